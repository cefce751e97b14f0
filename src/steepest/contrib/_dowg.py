"""DoWG, distance over weighted gradients.

Khaled, Mishchenko and Jin, DoWG unleashed: an efficient universal parameter-free
gradient descent method, 2023, arXiv:2305.16284
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array, Float

from .. import check
from ..combine import chain
from ..core import (
    AxisName,
    gives,
    GradientTransformationExtraArgs,
    like_optax,
    mesh_axes,
    Params,
    Real,
    ScalarOrSchedule,
)
from ..engine import MaskOrFn, optimizer
from ..numerics import root, scalar
from ..transforms import scale_by_learning_rate
from ._dog import decayed, scale_by_distance


@like_optax
class DoWGState(NamedTuple):
    """State of DoWG: the initial params, the distance from them and a sum of norms."""

    init_params: Params  # p0
    weighted_sq_norm_grads: Float[Array, ""]  # v, the sum of d ||g||^2
    estim_sq_dist: Float[Array, ""]  # d, the largest squared distance from p0


def first_square(*, init_estim_sq_dist: Real) -> Array:
    """The initial `d`."""
    return jnp.asarray(init_estim_sq_dist, float)


@gives("rate")
def dowg_rate(
    estim_sq_dist: Array,
    weighted_sq_norm_grads: Array,
    *,
    eps: Real,
    total: dict[str, Array],
) -> tuple[dict[str, Array], Array, Array]:
    """`d / (sqrt(v) + eps)`."""
    d = jnp.maximum(estim_sq_dist, total["distance"])
    v = weighted_sq_norm_grads + d * total["g"]
    return {"rate": d / (root(v) + eps)}, d, v


@optimizer
def dowg(
    learning_rate: ScalarOrSchedule = 1.0,
    init_estim_sq_dist: Real | None = None,
    eps: Real = 1e-4,
    weight_decay: ScalarOrSchedule | None = None,
    mask: MaskOrFn | None = None,
    *,
    axis_name: AxisName = None,
    memory_dtype: DTypeLike | None = None,
    keep_count: bool = False,
) -> GradientTransformationExtraArgs:
    """DoWG: like DoG, but gradients farther from the start have more weight.

        g <- g + weight_decay p
        d <- max(d, ||p - p0||^2)
        v <- v + d ||g||^2
        u  = -learning_rate d / (sqrt(v) + eps) g

    The norms are over all leaves.

    Args:
        learning_rate: multiplies the step: leave it at 1, or pass a schedule.
        init_estim_sq_dist: the initial `d`; by default `eps`.
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
    >>> tx = contrib.dowg(init_estim_sq_dist=0.01)
    >>> params = jnp.array([3.0, -4.0])
    >>> updates, state = tx.update(params, tx.init(params), params)
    >>> [round(float(u), 3) for u in updates]
    [-0.06, 0.08]
    """
    begin = eps if init_estim_sq_dist is None else init_estim_sq_dist
    (eps,) = check.nonnegative("dowg", eps=eps)
    (begin,) = check.amount("dowg", init_estim_sq_dist=begin)
    shared = {"estim_sq_dist": first_square, "weighted_sq_norm_grads": scalar()}
    numbers = {"eps": eps, "init_estim_sq_dist": begin}
    axes = mesh_axes("dowg", axis_name)
    return chain(
        decayed(weight_decay, mask),
        scale_by_distance("dowg", DoWGState, shared, numbers, dowg_rate, axes),
        scale_by_learning_rate(check.rate_given("dowg", learning_rate)),
    )
