"""Adam, AdamW and their Nesterov forms.

Kingma and Ba, Adam: a method for stochastic optimization, 2015, arXiv:1412.6980
Loshchilov and Hutter, Decoupled weight decay regularization, 2019, arXiv:1711.05101
Dozat, Incorporating Nesterov momentum into Adam, 2016, openreview OM0jvwB8jIp57ZJjtNEZ
"""

from typing import NamedTuple

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
from ..engine import lift, MaskOrFn, optimizer
from ..numerics import (
    abs_sq,
    bias_corrections,
    ema,
    first_moment,
    nesterov_corrections,
    nesterov_mean,
    root,
    second_moment,
    zero_count,
)
from ..transforms import add_decayed_weights
from ._descend import descend


@like_optax
class ScaleByAdamState(NamedTuple):
    """State of Adam: a step count, and two arrays per leaf."""

    count: Int[Array, ""]  # t, the number of steps taken
    mu: Updates  # mean of g, in `mu_dtype`
    nu: Updates  # mean of |g|^2, in `nu_dtype`


def adam_formula(
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
    """One step of Adam for one array, where `c = 1 - b^t`."""
    mu = ema(mu, g, b1)
    nu = ema(nu, abs_sq(g), b2)
    return mu / c1 / (root(nu / c2 + eps_root) + eps), mu, nu


def nadam_formula(
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
    next_c1: Array,
) -> tuple[Array, Array, Array]:
    """One step of Adam with Nesterov momentum."""
    mu = ema(mu, g, b1)
    nu = ema(nu, abs_sq(g), b2)
    m = nesterov_mean(mu, g, b1, c1, next_c1)
    return m / (root(nu / c2 + eps_root) + eps), mu, nu


@transformation
def scale_by_adam(
    b1: Real = 0.9,
    b2: Real = 0.999,
    eps: Real = 1e-8,
    eps_root: Real = 0.0,
    mu_dtype: DTypeLike | None = None,
    *,
    nesterov: bool = False,
    nu_dtype: DTypeLike | None = None,
) -> GradientTransformationExtraArgs:
    """Divide the mean of the gradients by their root mean square.

        mu <- b1 mu + (1 - b1) g
        nu <- b2 nu + (1 - b2) |g|^2
        m   = mu / (1 - b1^t)
        v   = nu / (1 - b2^t)
        u   = m / (sqrt(v + eps_root) + eps)

    With `nesterov`, `m = b1 mu / (1 - b1^(t+1)) + (1 - b1) g / (1 - b1^t)`.

    Args:
        b1: decay rate of `mu`, in [0, 1).
        b2: decay rate of `nu`, in [0, 1).
        eps: keeps `u` finite where the gradient is zero.
        eps_root: the same, added under the square root.
        mu_dtype: dtype of `mu`; by default that of the params.
        nesterov: whether to use Nesterov momentum.
        nu_dtype: dtype of `nu`; by default that of the params, or float32 if they
            are in half precision.
    """
    b1, b2 = check.fraction("scale_by_adam", b1=b1, b2=b2)
    (eps,) = check.nonnegative("scale_by_adam", eps=eps)
    (eps_root,) = check.nonnegative.must("scale_by_adam", eps_root=eps_root)
    check.dtype("scale_by_adam", mu_dtype=mu_dtype, nu_dtype=nu_dtype)
    check.flag("scale_by_adam", nesterov=nesterov)
    return lift(
        Rule(
            "scale_by_adam",
            nadam_formula if nesterov else adam_formula,
            ScaleByAdamState,
            memory={"mu": first_moment(mu_dtype), "nu": second_moment(nu_dtype)},
            shared={"count": zero_count},
            numbers={"b1": b1, "b2": b2, "eps": eps, "eps_root": eps_root},
            per_step=nesterov_corrections if nesterov else bias_corrections,
        )
    )


@optimizer
def adam(
    learning_rate: ScalarOrSchedule,
    b1: Real = 0.9,
    b2: Real = 0.999,
    eps: Real = 1e-8,
    eps_root: Real = 0.0,
    mu_dtype: DTypeLike | None = None,
    *,
    nesterov: bool = False,
    nu_dtype: DTypeLike | None = None,
    memory_dtype: DTypeLike | None = None,
    keep_count: bool = False,
) -> GradientTransformationExtraArgs:
    """Adam: `p <- p - learning_rate u`, with `u` from `scale_by_adam`.

    Args:
        learning_rate: a number, or a schedule (a function of the step count).
        b1: decay rate of the mean of the gradients, in [0, 1).
        b2: decay rate of the mean of their squares, in [0, 1).
        eps: keeps `u` finite where the gradient is zero.
        eps_root: the same, added under the square root.
        mu_dtype: dtype of the mean; by default that of the params.
        nesterov: whether to use Nesterov momentum.
        nu_dtype: dtype of the mean square; by default that of the params, or float32 if
            they are in half precision.
        memory_dtype: dtype of the arrays in the state that have no option of their own,
            such as `mu_dtype`, or where it is `None`; by default that of the params, or
            wider. With "int8", "int4" or "float8", averages for large matrices are
            stored in 8 or 4 bits: see `keeping`.
        keep_count: whether to count the steps even if the learning rate is a number, so
            that a schedule can replace it later.

    >>> import jax.numpy as jnp, steepest
    >>> tx = steepest.adam(learning_rate=0.1)
    >>> params = jnp.array([1.0, -2.0])
    >>> updates, state = tx.update(params, tx.init(params), params)
    >>> [round(float(u), 3) for u in updates]
    [-0.1, 0.1]
    """
    return chain(
        scale_by_adam(
            b1, b2, eps, eps_root, mu_dtype, nesterov=nesterov, nu_dtype=nu_dtype
        ),
        descend("adam", learning_rate),
    )


@optimizer
def adamw(
    learning_rate: ScalarOrSchedule,
    b1: Real = 0.9,
    b2: Real = 0.999,
    eps: Real = 1e-8,
    eps_root: Real = 0.0,
    mu_dtype: DTypeLike | None = None,
    weight_decay: ScalarOrSchedule = 1e-4,
    mask: MaskOrFn | None = None,
    *,
    nesterov: bool = False,
    nu_dtype: DTypeLike | None = None,
    memory_dtype: DTypeLike | None = None,
    keep_count: bool = False,
) -> GradientTransformationExtraArgs:
    """AdamW: `p <- p - learning_rate (u + weight_decay p)`, `u` from `scale_by_adam`.

    Args:
        learning_rate: a number, or a schedule (a function of the step count).
        b1: decay rate of the mean of the gradients, in [0, 1).
        b2: decay rate of the mean of their squares, in [0, 1).
        eps: keeps `u` finite where the gradient is zero.
        eps_root: the same, added under the square root.
        mu_dtype: dtype of the mean; by default that of the params.
        nesterov: whether to use Nesterov momentum.
        nu_dtype: dtype of the mean square; by default that of the params, or float32 if
            they are in half precision.
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
        scale_by_adam(
            b1, b2, eps, eps_root, mu_dtype, nesterov=nesterov, nu_dtype=nu_dtype
        ),
        add_decayed_weights(weight_decay, mask),
        descend("adamw", learning_rate),
    )


@optimizer
def nadam(
    learning_rate: ScalarOrSchedule,
    b1: Real = 0.9,
    b2: Real = 0.999,
    eps: Real = 1e-8,
    eps_root: Real = 0.0,
    mu_dtype: DTypeLike | None = None,
    *,
    nesterov: bool = True,
    nu_dtype: DTypeLike | None = None,
    memory_dtype: DTypeLike | None = None,
    keep_count: bool = False,
) -> GradientTransformationExtraArgs:
    """NAdam: `adam` with Nesterov momentum.

    Args:
        learning_rate: a number, or a schedule (a function of the step count).
        b1: decay rate of the mean of the gradients, in [0, 1).
        b2: decay rate of the mean of their squares, in [0, 1).
        eps: keeps `u` finite where the gradient is zero.
        eps_root: the same, added under the square root.
        mu_dtype: dtype of the mean; by default that of the params.
        nesterov: whether to use Nesterov momentum.
        nu_dtype: dtype of the mean square; by default that of the params, or float32 if
            they are in half precision.
        memory_dtype: dtype of the arrays in the state that have no option of their own,
            such as `mu_dtype`, or where it is `None`; by default that of the params, or
            wider. With "int8", "int4" or "float8", averages for large matrices are
            stored in 8 or 4 bits: see `keeping`.
        keep_count: whether to count the steps even if the learning rate is a number, so
            that a schedule can replace it later.
    """
    return adam(
        learning_rate,
        b1,
        b2,
        eps,
        eps_root,
        mu_dtype,
        nesterov=nesterov,
        nu_dtype=nu_dtype,
    )


@optimizer
def nadamw(
    learning_rate: ScalarOrSchedule,
    b1: Real = 0.9,
    b2: Real = 0.999,
    eps: Real = 1e-8,
    eps_root: Real = 0.0,
    mu_dtype: DTypeLike | None = None,
    weight_decay: ScalarOrSchedule = 1e-4,
    mask: MaskOrFn | None = None,
    *,
    nesterov: bool = True,
    nu_dtype: DTypeLike | None = None,
    memory_dtype: DTypeLike | None = None,
    keep_count: bool = False,
) -> GradientTransformationExtraArgs:
    """NAdamW: `adamw` with Nesterov momentum.

    Args:
        learning_rate: a number, or a schedule (a function of the step count).
        b1: decay rate of the mean of the gradients, in [0, 1).
        b2: decay rate of the mean of their squares, in [0, 1).
        eps: keeps `u` finite where the gradient is zero.
        eps_root: the same, added under the square root.
        mu_dtype: dtype of the mean; by default that of the params.
        nesterov: whether to use Nesterov momentum.
        nu_dtype: dtype of the mean square; by default that of the params, or float32 if
            they are in half precision.
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
    return adamw(
        learning_rate,
        b1,
        b2,
        eps,
        eps_root,
        mu_dtype,
        weight_decay,
        mask,
        nesterov=nesterov,
        nu_dtype=nu_dtype,
    )
