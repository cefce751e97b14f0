"""AdaGrad.

Duchi, Hazan and Singer, Adaptive subgradient methods for online learning and stochastic
optimization, 2011, jmlr.org/papers/v12/duchi11a
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array

from .. import check
from ..combine import chain
from ..core import (
    GradientTransformationExtraArgs,
    like_optax,
    Param,
    Real,
    Rule,
    ScalarOrSchedule,
    transformation,
    Updates,
)
from ..engine import lift, optimizer
from ..numerics import abs_sq, holding, root, second_moment
from ._descend import descend


@like_optax
class ScaleByRssState(NamedTuple):
    """State of AdaGrad: one array per leaf."""

    sum_of_squares: Updates  # sum of |g|^2 over all steps


@holding("nonnegative")
def initial_sum(p: Param, *, initial_accumulator_value: Real) -> Array:
    """The sum of squares before the first step."""
    return second_moment()(p) + initial_accumulator_value


def adagrad_formula(
    g: Array, sum_of_squares: Array, *, eps: Real
) -> tuple[Array, Array]:
    """One step of AdaGrad for one array."""
    s = sum_of_squares + abs_sq(g)
    # As in Optax, nothing moves unless the sum is above 0; NaN is not above 0.
    return g / jnp.where(s > 0, root(s + eps), jnp.inf), s


@transformation
def scale_by_rss(
    initial_accumulator_value: Real = 0.1, eps: Real = 1e-7
) -> GradientTransformationExtraArgs:
    """Divide by the root of the sum of all squared gradients so far.

        s <- s + |g|^2
        u  = g / sqrt(s + eps)

    Args:
        initial_accumulator_value: `s` before the first step.
        eps: keeps `u` finite where all gradients have been zero.
    """
    name = "scale_by_rss"
    (start,) = check.amount(name, initial_accumulator_value=initial_accumulator_value)
    (eps,) = check.nonnegative.must(name, eps=eps)
    return lift(
        Rule(
            name,
            adagrad_formula,
            ScaleByRssState,
            memory={"sum_of_squares": initial_sum},
            numbers={"initial_accumulator_value": start, "eps": eps},
        )
    )


@optimizer
def adagrad(
    learning_rate: ScalarOrSchedule,
    initial_accumulator_value: Real = 0.1,
    eps: Real = 1e-7,
    *,
    memory_dtype: DTypeLike | None = None,
    keep_count: bool = False,
) -> GradientTransformationExtraArgs:
    """AdaGrad: `p <- p - learning_rate u`, with `u` from `scale_by_rss`.

    Args:
        learning_rate: a number, or a schedule (a function of the step count). The sum
            never shrinks, so the steps get smaller even without a schedule.
        initial_accumulator_value: the sum of squares before the first step.
        eps: keeps `u` finite where all gradients have been zero.
        memory_dtype: dtype of the arrays in the state that have no option of their own,
            such as `mu_dtype`, or where it is `None`; by default that of the params, or
            wider. With "int8", "int4" or "float8", averages for large matrices are
            stored in 8 or 4 bits: see `keeping`.
        keep_count: whether to count the steps even if the learning rate is a number, so
            that a schedule can replace it later.

    >>> import jax.numpy as jnp, steepest
    >>> tx = steepest.adagrad(learning_rate=0.1)
    >>> params = jnp.array([1.0, -2.0])
    >>> updates, state = tx.update(params, tx.init(params), params)
    >>> [round(float(u), 3) for u in updates]
    [-0.095, 0.099]
    """
    return chain(
        scale_by_rss(initial_accumulator_value, eps),
        descend("adagrad", learning_rate),
    )
