"""AMSGrad: Adam with a denominator that never decreases.

Reddi, Kale and Kumar, On the convergence of Adam and beyond, 2018, arXiv:1904.09237
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array, Int

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
from ..engine import lift, optimizer
from ..numerics import (
    abs_sq,
    bias_corrections,
    ema,
    first_moment,
    root,
    second_moment,
    zero_count,
)
from ._descend import descend


@like_optax
class ScaleByAmsgradState(NamedTuple):
    """State of AMSGrad: a step count, and three arrays per leaf."""

    count: Int[Array, ""]  # t, the number of steps taken
    mu: Updates  # mean of g, in `mu_dtype`
    nu: Updates  # mean of |g|^2
    nu_max: Updates  # the largest v so far


def amsgrad_formula(
    g: Array,
    mu: Array,
    nu: Array,
    nu_max: Array,
    *,
    b1: Real,
    b2: Real,
    eps: Real,
    eps_root: Real,
    bias_correction_mu: bool,
    bias_correction_nu: bool,
    c1: Array,
    c2: Array,
) -> tuple[Array, Array, Array, Array]:
    """One step of AMSGrad for one array, where `c = 1 - b^t`."""
    mu = ema(mu, g, b1)
    nu = ema(nu, abs_sq(g), b2)
    m = mu / c1 if bias_correction_mu else mu
    v = nu / c2 if bias_correction_nu else nu
    nu_max = jnp.maximum(nu_max, v)
    return m / (root(nu_max + eps_root) + eps), mu, nu, nu_max


@transformation
def scale_by_amsgrad(
    b1: Real = 0.9,
    b2: Real = 0.999,
    eps: Real = 1e-8,
    eps_root: Real = 0.0,
    mu_dtype: DTypeLike | None = None,
    bias_correction_mu: bool = True,
    bias_correction_nu: bool = True,
) -> GradientTransformationExtraArgs:
    """Divide the mean of the gradients by their largest root mean square so far.

        mu     <- b1 mu + (1 - b1) g
        nu     <- b2 nu + (1 - b2) |g|^2
        m       = mu / (1 - b1^t)
        v       = nu / (1 - b2^t)
        nu_max <- max(nu_max, v)
        u       = m / (sqrt(nu_max + eps_root) + eps)

    The paper has no bias corrections: there `m = mu` and `v = nu`.

    Args:
        b1: decay rate of `mu`, in [0, 1).
        b2: decay rate of `nu`, in [0, 1).
        eps: keeps `u` finite where the gradient is zero.
        eps_root: the same, added under the square root.
        mu_dtype: dtype of `mu`; by default that of the params.
        bias_correction_mu: whether `m` is divided by `1 - b1^t`.
        bias_correction_nu: whether `v` is divided by `1 - b2^t`.
    """
    name = "scale_by_amsgrad"
    b1, b2 = check.fraction(name, b1=b1, b2=b2)
    (eps,) = check.nonnegative(name, eps=eps)
    (eps_root,) = check.nonnegative.must(name, eps_root=eps_root)
    check.dtype(name, mu_dtype=mu_dtype)
    check.flag(name, bias_correction_mu=bias_correction_mu)
    check.flag(name, bias_correction_nu=bias_correction_nu)
    return lift(
        Rule(
            name,
            amsgrad_formula,
            ScaleByAmsgradState,
            memory={
                "mu": first_moment(mu_dtype),
                "nu": second_moment(),
                "nu_max": second_moment(),
            },
            shared={"count": zero_count},
            numbers={
                "b1": b1,
                "b2": b2,
                "eps": eps,
                "eps_root": eps_root,
                "bias_correction_mu": bias_correction_mu,
                "bias_correction_nu": bias_correction_nu,
            },
            per_step=bias_corrections,
        )
    )


@optimizer
def amsgrad(
    learning_rate: ScalarOrSchedule,
    b1: Real = 0.9,
    b2: Real = 0.999,
    eps: Real = 1e-8,
    eps_root: Real = 0.0,
    mu_dtype: DTypeLike | None = None,
    bias_correction_mu: bool = True,
    bias_correction_nu: bool = True,
    *,
    memory_dtype: DTypeLike | None = None,
    keep_count: bool = False,
) -> GradientTransformationExtraArgs:
    """AMSGrad: `p <- p - learning_rate u`, with `u` from `scale_by_amsgrad`.

    Args:
        learning_rate: a number, or a schedule (a function of the step count).
        b1: decay rate of the mean of the gradients, in [0, 1).
        b2: decay rate of the mean of their squares, in [0, 1).
        eps: keeps `u` finite where the gradient is zero.
        eps_root: the same, added under the square root.
        mu_dtype: dtype of the mean; by default that of the params.
        bias_correction_mu: whether to correct the bias of the mean.
        bias_correction_nu: whether to correct the bias of the mean square.
        memory_dtype: dtype of the arrays in the state that have no option of their own,
            such as `mu_dtype`, or where it is `None`; by default that of the params, or
            wider. With "int8", "int4" or "float8", averages for large matrices are
            stored in 8 or 4 bits: see `keeping`.
        keep_count: whether to count the steps even if the learning rate is a number, so
            that a schedule can replace it later.

    >>> import jax.numpy as jnp, steepest
    >>> tx = steepest.amsgrad(learning_rate=0.1)
    >>> params = jnp.array([1.0, -2.0])
    >>> updates, state = tx.update(params, tx.init(params), params)
    >>> [round(float(u), 3) for u in updates]
    [-0.1, 0.1]
    """
    return chain(
        scale_by_amsgrad(
            b1, b2, eps, eps_root, mu_dtype, bias_correction_mu, bias_correction_nu
        ),
        descend("amsgrad", learning_rate),
    )
