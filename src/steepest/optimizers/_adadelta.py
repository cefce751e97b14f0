"""AdaDelta.

Zeiler, ADADELTA: an adaptive learning rate method, 2012, arXiv:1212.5701
"""

from typing import NamedTuple

from jax.typing import DTypeLike
from jaxtyping import Array

from .. import check
from ..combine import chain
from ..core import (
    GradientTransformationExtraArgs,
    like_optax,
    Real,
    Rule,
    ScalarOrSchedule,
    transformation,
    Updates,
)
from ..engine import lift, MaskOrFn, optimizer
from ..numerics import abs_sq, ema, root, second_moment
from ..transforms import add_decayed_weights, scale_by_learning_rate


@like_optax
class ScaleByAdaDeltaState(NamedTuple):
    """State of AdaDelta: two arrays per leaf."""

    e_g: Updates  # mean of |g|^2
    e_x: Updates  # mean of |u|^2


def adadelta_formula(
    g: Array, e_g: Array, e_x: Array, *, rho: Real, eps: Real
) -> tuple[Array, Array, Array]:
    """One step of AdaDelta for one array."""
    e_g = ema(e_g, abs_sq(g), rho)
    # The division comes last, so that XLA stores `u` instead of both roots.
    u = g / (root(e_g + eps) / root(e_x + eps))
    return u, e_g, ema(e_x, abs_sq(u), rho)


@transformation
def scale_by_adadelta(
    rho: Real = 0.9, eps: Real = 1e-6
) -> GradientTransformationExtraArgs:
    """Rescale the gradient to the size of the recent updates.

        e_g <- rho e_g + (1 - rho) |g|^2
        u    = g sqrt(e_x + eps) / sqrt(e_g + eps)
        e_x <- rho e_x + (1 - rho) |u|^2

    Args:
        rho: decay rate of both averages, in [0, 1).
        eps: its square root is the size of the first updates.
    """
    (rho,) = check.fraction("scale_by_adadelta", rho=rho)
    (eps,) = check.nonnegative.must("scale_by_adadelta", eps=eps)
    return lift(
        Rule(
            "scale_by_adadelta",
            adadelta_formula,
            ScaleByAdaDeltaState,
            memory={"e_g": second_moment(), "e_x": second_moment()},
            numbers={"rho": rho, "eps": eps},
        )
    )


@optimizer
def adadelta(
    learning_rate: ScalarOrSchedule | None = None,
    rho: Real = 0.9,
    eps: Real = 1e-6,
    weight_decay: ScalarOrSchedule = 0.0,
    weight_decay_mask: MaskOrFn | None = None,
    *,
    memory_dtype: DTypeLike | None = None,
    keep_count: bool = False,
) -> GradientTransformationExtraArgs:
    """AdaDelta: `p <- p - learning_rate u`, with `u` from `scale_by_adadelta`.

    Its input is `g + weight_decay p`. Without a learning rate the update is `u` itself,
    which points uphill: subtract it.

    Args:
        learning_rate: a number, a schedule, or `None`. The paper uses 1.
        rho: decay rate of the mean squares of gradients and updates, in [0, 1).
        eps: its square root is the size of the first updates.
        weight_decay: weight decay coefficient, added to the gradient before scaling.
        weight_decay_mask: the leaves to decay: a tree of booleans, a function of the
            params that returns one, or a regular expression for their paths; by
            default all.
        memory_dtype: dtype of the arrays in the state that have no option of their own,
            such as `mu_dtype`, or where it is `None`; by default that of the params, or
            wider. With "int8", "int4" or "float8", averages for large matrices are
            stored in 8 or 4 bits: see `keeping`.
        keep_count: whether to count the steps even if the learning rate is a number, so
            that a schedule can replace it later.

    >>> import jax.numpy as jnp, steepest
    >>> tx = steepest.adadelta(learning_rate=1.0)
    >>> params = jnp.array([1.0, -2.0])
    >>> updates, state = tx.update(params, tx.init(params), params)
    >>> [round(float(u), 5) for u in updates]
    [-0.00316, 0.00316]
    """
    return chain(
        add_decayed_weights(weight_decay, weight_decay_mask),
        scale_by_adadelta(rho, eps),
        scale_by_learning_rate(learning_rate),
    )
