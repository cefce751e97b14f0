"""NovoGrad: one second moment for each layer.

Ginsburg et al., Stochastic gradient methods with layer-wise adaptive moments for
training of deep networks, 2019, arXiv:1905.11286
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array, Int

from .. import check
from ..combine import chain
from ..core import (
    AxisName,
    gives,
    GradientTransformationExtraArgs,
    like_optax,
    mesh_axes,
    MeshAxes,
    Param,
    Real,
    Rule,
    ScalarOrSchedule,
    transformation,
    Updates,
)
from ..engine import lift, optimizer
from ..numerics import (
    ema,
    first_moment,
    increment,
    root,
    sum_of_squares,
    wide_dtype,
    zero_count,
)
from ._descend import descend


@like_optax
class ScaleByNovogradState(NamedTuple):
    """State of NovoGrad: a step count, and an array and a number per leaf."""

    count: Int[Array, ""]  # number of steps taken
    mu: Updates  # decayed sum of the directions, in `mu_dtype`
    nu: Updates  # mean of |g|^2, one number per leaf


def begin_nu(p: Param) -> Array:
    """`nu` before the first step: one number."""
    return jnp.zeros((), wide_dtype([p]))


@gives("first")
def first_step(count: Array) -> tuple[dict[str, Array], Array]:
    """Whether this is the first step."""
    return {"first": count == 0}, increment(count)


def novograd_formula(
    g: Array,
    p: Array,
    mu: Array,
    nu: Array,
    *,
    b1: Real,
    b2: Real,
    eps: Real,
    eps_root: Real,
    weight_decay: Real,
    axes: MeshAxes | None,
    first: Array,
) -> tuple[Array, Array, Array]:
    """One step of NovoGrad for one array."""
    square = sum_of_squares(g, axes)
    nu = jnp.where(first, square, ema(nu, square, b2))
    d = g / (root(nu + eps_root) + eps) + weight_decay * p
    mu = jnp.where(first, d, b1 * mu + d)
    return mu, mu, nu


@transformation
def scale_by_novograd(
    b1: Real = 0.9,
    b2: Real = 0.25,
    eps: Real = 1e-8,
    eps_root: Real = 0.0,
    weight_decay: Real = 0.0,
    mu_dtype: DTypeLike | None = None,
    *,
    axis_name: AxisName = None,
) -> GradientTransformationExtraArgs:
    """Divide each leaf by the root mean square of its norm, then add momentum.

        nu <- b2 nu + (1 - b2) |g|^2            |g| is the norm of the leaf
        mu <- b1 mu + g / (sqrt(nu + eps_root) + eps) + weight_decay p
        u   = mu

    At the first step `nu <- |g|^2`, and `mu` starts at the term added to it.

    Args:
        b1: decay rate of `mu`, in [0, 1).
        b2: decay rate of `nu`, in [0, 1).
        eps: keeps `u` finite where the gradient of the leaf is zero.
        eps_root: the same, added under the square root.
        weight_decay: weight decay coefficient; the decay is part of the momentum.
        mu_dtype: dtype of `mu`; by default that of the params.
        axis_name: inside `jax.shard_map`, the mesh axes over which the params are
            sharded. Without it, each device measures only its own shard.
    """
    name = "scale_by_novograd"
    b1, b2 = check.fraction(name, b1=b1, b2=b2)
    (eps,) = check.nonnegative(name, eps=eps)
    (eps_root,) = check.nonnegative.must(name, eps_root=eps_root)
    (weight_decay,) = check.finite(name, weight_decay=weight_decay)
    check.dtype(name, mu_dtype=mu_dtype)
    return lift(
        Rule(
            name,
            novograd_formula,
            ScaleByNovogradState,
            memory={"mu": first_moment(mu_dtype), "nu": begin_nu},
            shared={"count": zero_count},
            numbers={
                "b1": b1,
                "b2": b2,
                "eps": eps,
                "eps_root": eps_root,
                "weight_decay": weight_decay,
                "axes": mesh_axes(name, axis_name),
            },
            per_step=first_step,
            kind="whole",
        )
    )


@optimizer
def novograd(
    learning_rate: ScalarOrSchedule,
    b1: Real = 0.9,
    b2: Real = 0.25,
    eps: Real = 1e-6,
    eps_root: Real = 0.0,
    weight_decay: Real = 0.0,
    *,
    axis_name: AxisName = None,
    memory_dtype: DTypeLike | None = None,
    keep_count: bool = False,
) -> GradientTransformationExtraArgs:
    """NovoGrad: `p <- p - learning_rate u`, with `u` from `scale_by_novograd`.

    Args:
        learning_rate: a number, or a schedule (a function of the step count).
        b1: decay rate of the momentum, in [0, 1).
        b2: decay rate of the mean squared norm, in [0, 1).
        eps: keeps `u` finite where the gradient of the leaf is zero.
        eps_root: the same, added under the square root.
        weight_decay: weight decay coefficient; the decay is part of the momentum.
        axis_name: inside `jax.shard_map`, the mesh axes over which the params are
            sharded. Without it, each device measures only its own shard.
        memory_dtype: dtype of the arrays in the state that have no option of their own,
            such as `mu_dtype`, or where it is `None`; by default that of the params, or
            wider. With "int8", "int4" or "float8", averages for large matrices are
            stored in 8 or 4 bits: see `keeping`.
        keep_count: whether to count the steps even if the learning rate is a number, so
            that a schedule can replace it later.

    >>> import jax.numpy as jnp, steepest
    >>> tx = steepest.novograd(learning_rate=0.1)
    >>> params = jnp.array([3.0, -4.0])
    >>> updates, state = tx.update(params, tx.init(params), params)
    >>> [round(float(u), 3) for u in updates]
    [-0.06, 0.08]
    """
    return chain(
        scale_by_novograd(b1, b2, eps, eps_root, weight_decay, axis_name=axis_name),
        descend("novograd", learning_rate),
    )
