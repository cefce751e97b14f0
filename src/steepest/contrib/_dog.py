"""DoG, distance over gradients.

Ivgi, Hinder and Carmon, DoG is SGD's best friend: a parameter-free dynamic step size
schedule, 2023, arXiv:2302.12022
"""

from collections.abc import Callable, Mapping
from typing import Any, get_args, Literal, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from ..combine import chain
from ..core import (
    amount,
    AxisName,
    choice,
    GradientTransformationExtraArgs,
    like_optax,
    mesh_axes,
    MeshAxes,
    nonnegative,
    Params,
    rate_given,
    Real,
    Rule,
    ScalarOrSchedule,
    Step,
    transformation,
    WrongArgument,
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
    """What DoG remembers: where it began, how far it came, how long gradients were."""

    is_init_step: Bool[Array, ""]  # whether the first step is still to come
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
    memory_dtype: Any = None,
    keep_count: bool = False,
) -> GradientTransformationExtraArgs:
    """DoG: SGD with the distance from the beginning over the gradients as its rate.

        g <- g + weight_decay p
        r <- max(r, ||p - p0||)
        G <- G + ||g||^2
        u  = -learning_rate r / sqrt(G + eps) g

    The norms are over all leaves.

    Args:
        learning_rate: multiplies what is found: a number, or a function of the count.
            Leave it at 1.
        init_step: what the first step is: `("distance", r)` begins with that `r`,
            `("heuristic", a)` with `r = a (1 + ||p0||)`, and `("learning_rate", a)`
            takes `u = -learning_rate a g` once.
        eps: keeps `u` finite where the gradient is zero.
        weight_decay: added to the gradient, times the params; `None` for none.
        mask: which leaves decay, as for `masked`; by default all.
        axis_name: inside `jax.shard_map`, the mesh axes over which the params are
            split. Without it, each device measures its own part.
        memory_dtype, keep_count: as for `keeping`.

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
        scale_by_learning_rate(rate_given("dog", learning_rate)),
    )


@transformation
def decayed(
    weight_decay: ScalarOrSchedule | None, mask: MaskOrFn | None
) -> GradientTransformationExtraArgs:
    """`g + weight_decay p`, or `g`."""
    if weight_decay is None:
        return identity()
    return add_decayed_weights(weight_decay, mask)


@transformation
def scale_by_distance(
    who: str,
    State: type,
    shared: Mapping[str, Callable[[], Array]],
    prepare: Callable[..., Any],
    axes: MeshAxes | None,
) -> GradientTransformationExtraArgs:
    """`u = rate g`, where `prepare` finds the rate of two sums of squares.

    Args:
        who: who speaks in an error.
        State: with the names of `shared`, and `init_params`.
        shared: as in a rule.
        prepare: as in a rule; it finds `||p - p0||^2` and `||g||^2` as `distance` and
            `g`, and returns `rate`.
        axes: as in a rule.
    """

    def measure(n: Any, g: Array, p: Array, p0: Array) -> dict[str, Array]:
        return {"distance": sum_of_squares(p - p0), "g": sum_of_squares(g)}

    def leaf(n: Any, g: Array, p: Array, p0: Array) -> tuple[Array, Array]:
        return n.rate * g, p0

    return lift(
        Rule(
            who,
            State,
            leaf,
            remember={"init_params": copy_of},
            shared=shared,
            prepare=prepare,
            measure=measure,
            axes=axes,
            needs=("params",),
        )
    )


def _scale_by_dog(
    init_step: tuple[InitStep, Real], eps: Real, axes: MeshAxes | None
) -> GradientTransformationExtraArgs:
    """`u = r / sqrt(G + eps) g`."""
    try:
        kind, first = init_step
    except (TypeError, ValueError):
        raise WrongArgument(
            f"dog: init_step is {init_step!r}, and a name and a number, such as "
            "('heuristic', 1e-6), are wanted."
        ) from None
    choice("dog", get_args(InitStep), **{"init_step[0]": kind})
    (eps,) = nonnegative("dog", eps=eps)
    (first,) = amount("dog", **{"init_step[1]": first})

    def prepare(
        step: Step, is_init_step: Array, r: Array, G: Array
    ) -> tuple[dict[str, Array], Array, Array, Array]:
        r = jnp.maximum(r, sqrt_or_zero(step.total["distance"]))
        G = G + step.total["g"]
        rate = r / root(G + eps)
        if kind != "learning_rate":
            return {"rate": rate}, jnp.zeros_like(is_init_step), r, G
        rate = jnp.where(is_init_step, first, rate)
        # Without a gradient nothing has moved: r is still 0, and all would end here.
        return {"rate": rate}, is_init_step & (step.total["g"] == 0), r, G

    shared = {
        "is_init_step": lambda: jnp.array(True),
        "max_dist": scalar(first if kind == "distance" else 0.0),
        "sum_sq_norm_grads": scalar(),
    }
    tx = scale_by_distance("dog", DoGState, shared, prepare, axes)
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
