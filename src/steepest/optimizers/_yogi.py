"""Yogi: Adam with a mean square that changes by at most `(1 - b2) |g|^2` a step.

Zaheer et al., Adaptive methods for nonconvex optimization, 2018,
papers.nips.cc/paper/8186-adaptive-methods-for-nonconvex-optimization
"""

import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array

from .. import check
from ..combine import chain
from ..core import (
    GradientTransformationExtraArgs,
    Param,
    Real,
    Rule,
    ScalarOrSchedule,
    transformation,
)
from ..engine import lift, optimizer
from ..numerics import (
    abs_sq,
    bias_corrections,
    ema,
    first_moment,
    holding,
    root,
    second_moment,
    zero_count,
)
from ._adam import ScaleByAdamState
from ._descend import descend


@holding("signed")
def initial_mean(p: Param, *, initial_accumulator_value: Real) -> Array:
    """`mu` before the first step."""
    return first_moment()(p) + initial_accumulator_value


@holding("nonnegative")
def initial_mean_square(p: Param, *, initial_accumulator_value: Real) -> Array:
    """`nu` before the first step."""
    return second_moment()(p) + initial_accumulator_value


def yogi_formula(
    g: Array,
    mu: Array,
    nu: Array,
    *,
    b1: Real,
    b2: Real,
    eps: Real,
    eps_root: Real,
    c1: Array,
    c2: Array,
) -> tuple[Array, Array, Array]:
    """One step of Yogi for one array, where `c = 1 - b^t`."""
    mu = ema(mu, g, b1)
    square = abs_sq(g)
    nu = nu - (1 - b2) * jnp.sign(nu - square) * square
    return mu / c1 / (root(nu / c2 + eps_root) + eps), mu, nu


@transformation
def scale_by_yogi(
    b1: Real = 0.9,
    b2: Real = 0.999,
    eps: Real = 1e-3,
    eps_root: Real = 0.0,
    initial_accumulator_value: Real = 1e-6,
) -> GradientTransformationExtraArgs:
    """Divide the mean of the gradients by a root mean square that changes slowly.

        mu <- b1 mu + (1 - b1) g
        nu <- nu - (1 - b2) sign(nu - |g|^2) |g|^2
        m   = mu / (1 - b1^t)
        v   = nu / (1 - b2^t)
        u   = m / (sqrt(v + eps_root) + eps)

    Where `nu` is far above `|g|^2`, it decreases more slowly than Adam's.

    Args:
        b1: decay rate of `mu`, in [0, 1).
        b2: `1 - b2` is the rate at which `nu` changes; in [0, 1).
        eps: keeps `u` finite where the gradient is zero.
        eps_root: the same, added under the square root.
        initial_accumulator_value: `mu` and `nu` before the first step.
    """
    name = "scale_by_yogi"
    b1, b2 = check.fraction(name, b1=b1, b2=b2)
    (eps,) = check.nonnegative(name, eps=eps)
    (eps_root,) = check.nonnegative.must(name, eps_root=eps_root)
    (start,) = check.amount(name, initial_accumulator_value=initial_accumulator_value)
    return lift(
        Rule(
            name,
            yogi_formula,
            ScaleByAdamState,
            memory={"mu": initial_mean, "nu": initial_mean_square},
            shared={"count": zero_count},
            numbers={
                "b1": b1,
                "b2": b2,
                "eps": eps,
                "eps_root": eps_root,
                "initial_accumulator_value": start,
            },
            per_step=bias_corrections,
        )
    )


@optimizer
def yogi(
    learning_rate: ScalarOrSchedule,
    b1: Real = 0.9,
    b2: Real = 0.999,
    eps: Real = 1e-3,
    *,
    memory_dtype: DTypeLike | None = None,
    keep_count: bool = False,
) -> GradientTransformationExtraArgs:
    """Yogi: `p <- p - learning_rate u`, with `u` from `scale_by_yogi`.

    Args:
        learning_rate: a number, or a schedule (a function of the step count).
        b1: decay rate of the mean of the gradients, in [0, 1).
        b2: `1 - b2` is the rate at which the mean square changes; in [0, 1).
        eps: keeps `u` finite where the gradient is zero.
        memory_dtype: dtype of the arrays in the state that have no option of their own,
            such as `mu_dtype`, or where it is `None`; by default that of the params, or
            wider. With "int8", "int4" or "float8", averages for large matrices are
            stored in 8 or 4 bits: see `keeping`.
        keep_count: whether to count the steps even if the learning rate is a number, so
            that a schedule can replace it later.

    >>> import jax.numpy as jnp, steepest
    >>> tx = steepest.yogi(learning_rate=0.1)
    >>> params = jnp.array([1.0, -2.0])
    >>> updates, state = tx.update(params, tx.init(params), params)
    >>> [round(float(u), 3) for u in updates]
    [-0.1, 0.1]
    """
    return chain(
        scale_by_yogi(b1, b2, eps),
        descend("yogi", learning_rate),
    )
