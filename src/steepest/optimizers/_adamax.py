"""AdaMax: Adam with a decaying maximum instead of the mean square.

Kingma and Ba, Adam: a method for stochastic optimization, 2015, arXiv:1412.6980
Loshchilov and Hutter, Decoupled weight decay regularization, 2019, arXiv:1711.05101
"""

import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array

from .. import check
from ..combine import chain
from ..core import (
    GradientTransformationExtraArgs,
    Real,
    Rule,
    ScalarOrSchedule,
    transformation,
)
from ..engine import lift, MaskOrFn, optimizer
from ..numerics import bias_corrections, ema, first_moment, second_moment, zero_count
from ..transforms import add_decayed_weights
from ._adam import ScaleByAdamState
from ._descend import descend


def adamax_formula(
    g: Array, mu: Array, nu: Array, *, b1: Real, b2: Real, eps: Real, c1: Array
) -> tuple[Array, Array, Array]:
    """One step of AdaMax for one array, where `c1 = 1 - b1^t`."""
    mu = ema(mu, g, b1)
    nu = jnp.maximum(b2 * nu, jnp.abs(g) + eps)
    # nu is zero only if eps = 0. Then mu is zero as well, and so is u.
    largest = jnp.where(nu > 0, nu, 1)
    return mu / c1 / largest, mu, nu


@transformation
def scale_by_adamax(
    b1: Real = 0.9, b2: Real = 0.999, eps: Real = 1e-8
) -> GradientTransformationExtraArgs:
    """Divide the mean of the gradients by a decaying maximum of their size.

        mu <- b1 mu + (1 - b1) g
        nu <- max(b2 nu, |g| + eps)
        u   = mu / (1 - b1^t) / nu

    Args:
        b1: decay rate of `mu`, in [0, 1).
        b2: decay rate of `nu`, in [0, 1).
        eps: keeps `u` finite where the gradient is zero.
    """
    b1, b2 = check.fraction("scale_by_adamax", b1=b1, b2=b2)
    (eps,) = check.nonnegative("scale_by_adamax", eps=eps)
    return lift(
        Rule(
            "scale_by_adamax",
            adamax_formula,
            ScaleByAdamState,
            memory={"mu": first_moment(), "nu": second_moment()},
            shared={"count": zero_count},
            numbers={"b1": b1, "b2": b2, "eps": eps},
            per_step=bias_corrections,
        )
    )


@optimizer
def adamax(
    learning_rate: ScalarOrSchedule,
    b1: Real = 0.9,
    b2: Real = 0.999,
    eps: Real = 1e-8,
    *,
    memory_dtype: DTypeLike | None = None,
    keep_count: bool = False,
) -> GradientTransformationExtraArgs:
    """AdaMax: `p <- p - learning_rate u`, with `u` from `scale_by_adamax`.

    Args:
        learning_rate: a number, or a schedule (a function of the step count).
        b1: decay rate of the mean of the gradients, in [0, 1).
        b2: decay rate of their maximum, in [0, 1).
        eps: keeps `u` finite where the gradient is zero.
        memory_dtype: dtype of the arrays in the state that have no option of their own,
            such as `mu_dtype`, or where it is `None`; by default that of the params, or
            wider. With "int8", "int4" or "float8", averages for large matrices are
            stored in 8 or 4 bits: see `keeping`.
        keep_count: whether to count the steps even if the learning rate is a number, so
            that a schedule can replace it later.

    >>> import jax.numpy as jnp, steepest
    >>> tx = steepest.adamax(learning_rate=0.1)
    >>> params = jnp.array([1.0, -2.0])
    >>> updates, state = tx.update(params, tx.init(params), params)
    >>> [round(float(u), 3) for u in updates]
    [-0.1, 0.1]
    """
    return chain(
        scale_by_adamax(b1, b2, eps),
        descend("adamax", learning_rate),
    )


@optimizer
def adamaxw(
    learning_rate: ScalarOrSchedule,
    b1: Real = 0.9,
    b2: Real = 0.999,
    eps: Real = 1e-8,
    weight_decay: ScalarOrSchedule = 1e-4,
    mask: MaskOrFn | None = None,
    *,
    memory_dtype: DTypeLike | None = None,
    keep_count: bool = False,
) -> GradientTransformationExtraArgs:
    """AdaMaxW: `adamax` with decoupled weight decay.

        p <- p - learning_rate (u + weight_decay p)

    Args:
        learning_rate: a number, or a schedule (a function of the step count).
        b1: decay rate of the mean of the gradients, in [0, 1).
        b2: decay rate of their maximum, in [0, 1).
        eps: keeps `u` finite where the gradient is zero.
        weight_decay: weight decay coefficient, multiplied by the learning rate.
        mask: the leaves to decay: a tree of booleans, a function of the params that
            returns one, or a regular expression for their paths; by default all.
        memory_dtype: dtype of the arrays in the state that have no option of their own,
            such as `mu_dtype`, or where it is `None`; by default that of the params, or
            wider. With "int8", "int4" or "float8", averages for large matrices are
            stored in 8 or 4 bits: see `keeping`.
        keep_count: whether to count the steps even if the learning rate is a number, so
            that a schedule can replace it later.
    """
    return chain(
        scale_by_adamax(b1, b2, eps),
        add_decayed_weights(weight_decay, mask),
        descend("adamaxw", learning_rate),
    )
