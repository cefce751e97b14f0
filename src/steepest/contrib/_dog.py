"""DoG, distance over gradients.

Ivgi, Hinder and Carmon, DoG is SGD's best friend: a parameter-free dynamic step size
schedule, 2023, arXiv:2302.12022
"""

from collections.abc import Callable, Mapping
from typing import get_args, Literal, NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array, Bool, Float

from .. import check
from ..combine import chain
from ..core import (
    AxisName,
    gives,
    GradientTransformationExtraArgs,
    like_optax,
    Measure,
    mesh_axes,
    MeshAxes,
    Params,
    PerStep,
    Real,
    Rule,
    ScalarOrSchedule,
)
from ..engine import lift, MaskOrFn, optimizer
from ..numerics import (
    copy_of,
    root,
    scalar,
    sqrt_or_zero,
    squares,
    sum_of_leaves,
    sum_of_squares,
)
from ..transforms import add_decayed_weights, identity, scale_by_learning_rate

InitStep = Literal["distance", "learning_rate", "heuristic"]


@like_optax
class DoGState(NamedTuple):
    """State of DoG: the initial params, the distance from them and a sum of norms."""

    is_init_step: Bool[Array, ""]  # whether the next step is the first
    init_params: Params  # p0
    max_dist: Float[Array, ""]  # r, the largest distance from p0
    sum_sq_norm_grads: Float[Array, ""]  # G, the sum of ||g||^2


@optimizer
def dog(
    learning_rate: ScalarOrSchedule = 1.0,
    init_step: tuple[InitStep, Real] = ("heuristic", 1e-6),
    eps: Real = 1e-8,
    weight_decay: ScalarOrSchedule | None = None,
    mask: MaskOrFn | None = None,
    *,
    axis_name: AxisName = None,
    memory_dtype: DTypeLike | None = None,
    keep_count: bool = False,
) -> GradientTransformationExtraArgs:
    """DoG: SGD with a step size of distance from the start over gradient norms.

        g <- g + weight_decay p
        r <- max(r, ||p - p0||)
        G <- G + ||g||^2
        u  = -learning_rate r / sqrt(G + eps) g

    The norms are over all leaves.

    Args:
        learning_rate: multiplies the step: leave it at 1, or pass a schedule.
        init_step: the first step: `("distance", r)` starts with that `r`,
            `("heuristic", a)` starts with `r = a (1 + ||p0||)`, and
            `("learning_rate", a)` takes one step `u = -learning_rate a g`.
        eps: keeps `u` finite where the gradient is zero.
        weight_decay: weight decay coefficient; the decay is added to the gradient;
            `None` for no decay.
        mask: the leaves to decay: a tree of booleans, a function of the params that
            returns one, or a regular expression for their paths; by default all.
        axis_name: inside `jax.shard_map`, the mesh axes over which the params are
            sharded. Without it, each device measures only its own shard.
        memory_dtype: dtype of the arrays in the state that have no option of their own,
            such as `mu_dtype`, or where it is `None`; by default that of the params, or
            wider. With "int8", "int4" or "float8", averages for large matrices are
            stored in 8 or 4 bits: see `keeping`.
        keep_count: whether to count the steps even if the learning rate is a number, so
            that a schedule can replace it later.

    >>> import jax.numpy as jnp
    >>> from steepest import contrib
    >>> tx = contrib.dog(init_step=("distance", 0.1))
    >>> params = jnp.array([3.0, -4.0])
    >>> updates, state = tx.update(params, tx.init(params), params)
    >>> [round(float(u), 3) for u in updates]
    [-0.06, 0.08]
    """
    return chain(
        decayed(weight_decay, mask),
        _scale_by_dog(init_step, eps, mesh_axes("dog", axis_name)),
        scale_by_learning_rate(check.rate_given("dog", learning_rate)),
    )


def decayed(
    weight_decay: ScalarOrSchedule | None, mask: MaskOrFn | None
) -> GradientTransformationExtraArgs:
    """`g + weight_decay p`, or `g` without weight decay."""
    if weight_decay is None:
        return identity()
    return add_decayed_weights(weight_decay, mask)


def rate_formula(g: Array, *, rate: Array) -> Array:
    """`u = rate g`."""
    return rate * g


def distance_measure(g: Array, p: Array, init_params: Array) -> dict[str, Array]:
    """`||p - p0||^2` and `||g||^2`."""
    return {"distance": sum_of_squares(p - init_params), "g": sum_of_squares(g)}


def scale_by_distance(
    name: str,
    State: type,
    shared: Mapping[str, Callable[..., Array]],
    numbers: Mapping[str, object],
    per_step: PerStep,
    axes: MeshAxes | None,
) -> GradientTransformationExtraArgs:
    """`u = rate g`, where `per_step` computes the rate from two sums of squares.

    Args:
        name: name used in error messages.
        State: a named tuple with the names of `shared`, and `init_params`.
        shared: the initial value of each field that is kept for the tree.
        numbers: the hyperparameters.
        per_step: runs once per step and returns `rate`; in its `total`, `distance` is
            `||p - p0||^2` and `g` is `||g||^2`.
        axes: inside `jax.shard_map`, the mesh axes over which the params are sharded.
    """
    return lift(
        Rule(
            name,
            rate_formula,
            State,
            memory={"init_params": copy_of},
            shared=shared,
            numbers=numbers,
            per_step=per_step,
            measure=Measure(distance_measure, axes=axes),
        )
    )


def is_first() -> Array:
    """The initial `is_init_step`."""
    return jnp.array(True)


def first_distance(*, distance: Real) -> Array:
    """The initial `r`."""
    return jnp.asarray(distance, float)


@gives("rate")
def dog_rate(
    is_init_step: Array,
    max_dist: Array,
    sum_sq_norm_grads: Array,
    *,
    eps: Real,
    total: dict[str, Array],
) -> tuple[dict[str, Array], Array, Array, Array]:
    """`r / sqrt(G + eps)`."""
    r = jnp.maximum(max_dist, sqrt_or_zero(total["distance"]))
    G = sum_sq_norm_grads + total["g"]
    return {"rate": r / root(G + eps)}, jnp.zeros_like(is_init_step), r, G


@gives("rate")
def dog_rate_after_first(
    is_init_step: Array,
    max_dist: Array,
    sum_sq_norm_grads: Array,
    *,
    eps: Real,
    first_rate: Real,
    total: dict[str, Array],
) -> tuple[dict[str, Array], Array, Array, Array]:
    """The same, except that the first step uses `first_rate`."""
    r = jnp.maximum(max_dist, sqrt_or_zero(total["distance"]))
    G = sum_sq_norm_grads + total["g"]
    rate = jnp.where(is_init_step, first_rate, r / root(G + eps))
    # A zero gradient moves nothing: r would stay 0, and so would all later steps.
    return {"rate": rate}, is_init_step & (total["g"] == 0), r, G


def _scale_by_dog(
    init_step: tuple[InitStep, Real], eps: Real, axes: MeshAxes | None
) -> GradientTransformationExtraArgs:
    """`u = r / sqrt(G + eps) g`."""
    try:
        kind, first = init_step
    except (TypeError, ValueError):
        raise check.WrongArgument(
            f"dog: init_step is {init_step!r}, expected a name and a number, such as "
            "('heuristic', 1e-6)."
        ) from None
    check.choice("dog", get_args(InitStep), **{"init_step[0]": kind})
    (eps,) = check.nonnegative("dog", eps=eps)
    (first,) = check.amount("dog", **{"init_step[1]": first})
    numbers = {"eps": eps, "distance": first if kind == "distance" else 0.0}
    per_step = dog_rate
    if kind == "learning_rate":
        numbers, per_step = {**numbers, "first_rate": first}, dog_rate_after_first
    shared = {
        "is_init_step": is_first,
        "max_dist": first_distance,
        "sum_sq_norm_grads": scalar(),
    }
    tx = scale_by_distance("dog", DoGState, shared, numbers, per_step, axes)
    if kind != "heuristic":
        return tx

    def init(params: Params) -> DoGState:
        state = tx.init(params)
        return state._replace(max_dist=first * (1 + _length(state.init_params, axes)))

    return GradientTransformationExtraArgs(init, tx.update)


def _length(params: Params, axes: MeshAxes | None) -> Float[Array, ""]:
    """The norm over all leaves."""
    leaves = jax.tree.leaves(params)
    square = lambda x: jnp.sum(squares(x)).astype(float)
    return sqrt_or_zero(sum_of_leaves(axes, square, leaves, jnp.zeros(())))
