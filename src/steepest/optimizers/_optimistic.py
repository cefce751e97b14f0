"""Optimistic gradient methods: predict that the last gradient repeats.

Mokhtari, Ozdaglar and Pattathil, A unified analysis of extra-gradient and optimistic
gradient methods for saddle point problems, 2020, arXiv:1901.08511
Daskalakis et al., Training GANs with optimism, 2018, arXiv:1711.00141
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array, Bool

from .. import check
from ..combine import chain
from ..core import (
    gives,
    GradientTransformationExtraArgs,
    like_optax,
    Real,
    Rule,
    ScalarOrSchedule,
    transformation,
    Updates,
)
from ..engine import lift, optimizer
from ..numerics import first_moment
from ._adam import scale_by_adam
from ._descend import descend


@like_optax
class ScaleByOptimisticGradientState(NamedTuple):
    """State: whether this is the first step, and one array per leaf."""

    is_initial_step: Bool[Array, ""]
    previous_gradient: Updates


def yes() -> Bool[Array, ""]:
    """`is_initial_step` before the first step."""
    return jnp.ones((), bool)


@gives("first", "now", "before")
def optimistic_weights(
    is_initial_step: Array, *, alpha: Real, beta: Real
) -> tuple[dict[str, Array], Array]:
    """Whether this is the first step, and the weights of this and the last gradient.

    The weights are arrays because both depend on the learning rate of
    `optimistic_adam`: a new value of it does not compile a new step.
    """
    now, before = jnp.asarray(alpha + beta, float), jnp.asarray(beta, float)
    numbers = {"first": is_initial_step, "now": now, "before": before}
    return numbers, jnp.zeros_like(is_initial_step)


def optimistic_formula(
    g: Array, previous_gradient: Array, *, first: Array, now: Array, before: Array
) -> tuple[Array, Array]:
    """`u = alpha g + beta (g - previous_gradient)`."""
    previous = jnp.where(first, g, previous_gradient)
    return now * g - before * previous, g


@transformation
def scale_by_optimistic_gradient(
    alpha: Real = 1.0, beta: Real = 1.0
) -> GradientTransformationExtraArgs:
    """Add the change of the gradient to the gradient.

        u = alpha g + beta (g - previous_gradient)      at the first step, u = alpha g

    Args:
        alpha: weight of the gradient.
        beta: weight of its change. With `beta = 0` this is `scale(alpha)`.
    """
    alpha, beta = check.finite("scale_by_optimistic_gradient", alpha=alpha, beta=beta)
    return lift(
        Rule(
            "scale_by_optimistic_gradient",
            optimistic_formula,
            ScaleByOptimisticGradientState,
            memory={"previous_gradient": first_moment()},
            shared={"is_initial_step": yes},
            numbers={"alpha": alpha, "beta": beta},
            per_step=optimistic_weights,
        )
    )


@optimizer
def optimistic_gradient_descent(
    learning_rate: ScalarOrSchedule,
    alpha: Real = 1.0,
    beta: Real = 1.0,
    *,
    memory_dtype: DTypeLike | None = None,
    keep_count: bool = False,
) -> GradientTransformationExtraArgs:
    """Optimistic gradient descent: `p <- p - learning_rate u`.

    `u` comes from `scale_by_optimistic_gradient`. In a two-player game plain gradient
    descent may cycle; this method does not.

    Args:
        learning_rate: a number, or a schedule (a function of the step count).
        alpha: weight of the gradient.
        beta: weight of its change.
        memory_dtype: dtype of the arrays in the state that have no option of their own,
            such as `mu_dtype`, or where it is `None`; by default that of the params, or
            wider. With "int8", "int4" or "float8", averages for large matrices are
            stored in 8 or 4 bits: see `keeping`.
        keep_count: whether to count the steps even if the learning rate is a number, so
            that a schedule can replace it later.

    >>> import jax.numpy as jnp, steepest
    >>> tx = steepest.optimistic_gradient_descent(learning_rate=0.1)
    >>> g = jnp.array([1.0])
    >>> u, state = tx.update(g, tx.init(g))
    >>> u, state = tx.update(3 * g, state)
    >>> round(float(u[0]), 3)
    -0.5
    """
    return chain(
        scale_by_optimistic_gradient(alpha, beta),
        descend("optimistic_gradient_descent", learning_rate),
    )


@optimizer
def optimistic_adam(
    learning_rate: Real,
    optimism: Real | None = None,
    b1: Real = 0.9,
    b2: Real = 0.999,
    eps: Real = 1e-8,
    eps_root: Real = 0.0,
    mu_dtype: DTypeLike | None = None,
    *,
    nesterov: bool = True,
    memory_dtype: DTypeLike | None = None,
    keep_count: bool = False,
) -> GradientTransformationExtraArgs:
    """Optimistic Adam, with `u` from `scale_by_adam`.

        p <- p - learning_rate u - optimism (u - previous u)

    Args:
        learning_rate: a number. For a schedule, use `optimistic_adam_v2`.
        optimism: weight of the change of `u`; by default the learning rate.
        b1: decay rate of the mean of the gradients, in [0, 1).
        b2: decay rate of the mean of their squares, in [0, 1).
        eps: keeps `u` finite where the gradient is zero.
        eps_root: the same, added under the square root.
        mu_dtype: dtype of the mean; by default that of the params.
        nesterov: whether to use Nesterov momentum.
        memory_dtype: dtype of the arrays in the state that have no option of their own,
            such as `mu_dtype`, or where it is `None`; by default that of the params, or
            wider. With "int8", "int4" or "float8", averages for large matrices are
            stored in 8 or 4 bits: see `keeping`.
        keep_count: whether to count the steps even if the learning rate is a number, so
            that a schedule can replace it later.
    """
    if callable(learning_rate):
        raise ValueError(
            "optimistic_adam: learning_rate is a schedule, expected a number. Use "
            "`optimistic_adam_v2`, which takes schedules."
        )
    (learning_rate,) = check.finite("optimistic_adam", learning_rate=learning_rate)
    return optimistic_adam_v2(
        1.0,
        alpha=learning_rate,
        beta=learning_rate if optimism is None else optimism,
        b1=b1,
        b2=b2,
        eps=eps,
        eps_root=eps_root,
        mu_dtype=mu_dtype,
        nesterov=nesterov,
    )


@optimizer
def optimistic_adam_v2(
    learning_rate: ScalarOrSchedule,
    *,
    alpha: Real = 1.0,
    beta: Real = 1.0,
    b1: Real = 0.9,
    b2: Real = 0.999,
    eps: Real = 1e-8,
    eps_root: Real = 0.0,
    mu_dtype: DTypeLike | None = None,
    nesterov: bool = True,
    memory_dtype: DTypeLike | None = None,
    keep_count: bool = False,
) -> GradientTransformationExtraArgs:
    """Optimistic Adam, with `u` from `scale_by_adam`.

        p <- p - learning_rate (alpha u + beta (u - previous u))

    Args:
        learning_rate: a number, or a schedule (a function of the step count).
        alpha: weight of `u`.
        beta: weight of its change.
        b1: decay rate of the mean of the gradients, in [0, 1).
        b2: decay rate of the mean of their squares, in [0, 1).
        eps: keeps `u` finite where the gradient is zero.
        eps_root: the same, added under the square root.
        mu_dtype: dtype of the mean; by default that of the params.
        nesterov: whether to use Nesterov momentum.
        memory_dtype: dtype of the arrays in the state that have no option of their own,
            such as `mu_dtype`, or where it is `None`; by default that of the params, or
            wider. With "int8", "int4" or "float8", averages for large matrices are
            stored in 8 or 4 bits: see `keeping`.
        keep_count: whether to count the steps even if the learning rate is a number, so
            that a schedule can replace it later.
    """
    return chain(
        scale_by_adam(b1, b2, eps, eps_root, mu_dtype, nesterov=nesterov),
        scale_by_optimistic_gradient(alpha, beta),
        descend("optimistic_adam_v2", learning_rate),
    )
