"""AdaGrad.

Duchi, Hazan and Singer, Adaptive subgradient methods for online learning and stochastic
optimization, 2011, jmlr.org/papers/v12/duchi11a
"""

from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array

from ..combine import chain
from ..core import (
    amount,
    GradientTransformationExtraArgs,
    like_optax,
    nonnegative,
    Real,
    Rule,
    ScalarOrSchedule,
    transformation,
    Updates,
)
from ..engine import lift, optimizer
from ..numerics import abs_sq, beginning_at, root, second_moment
from ._descend import descend


@like_optax
class ScaleByRssState(NamedTuple):
    """What AdaGrad remembers: an array for each leaf."""

    sum_of_squares: Updates  # of all gradients, |g|^2


@transformation
def scale_by_rss(
    initial_accumulator_value: Real = 0.1, eps: Real = 1e-7
) -> GradientTransformationExtraArgs:
    """Divide by the root of the sum of all squares so far.

        s <- s + |g|^2
        u  = g / sqrt(s + eps)

    Args:
        initial_accumulator_value: where `s` begins.
        eps: keeps `u` finite where no gradient has been yet.
    """
    who = "scale_by_rss"
    (start,) = amount(who, initial_accumulator_value=initial_accumulator_value)
    (eps,) = nonnegative.must(who, eps=eps)

    def leaf(n: Any, g: Array, p: Array | None, s: Array) -> tuple[Array, Array]:
        s = s + abs_sq(g)
        # As in Optax, nothing moves unless the sum is above 0: NaN is not.
        return g / jnp.where(s > 0, root(s + eps), jnp.inf), s

    remember = {"sum_of_squares": beginning_at(start, second_moment())}
    return lift(Rule(who, ScaleByRssState, leaf, remember))


@optimizer
def adagrad(
    learning_rate: ScalarOrSchedule,
    initial_accumulator_value: Real = 0.1,
    eps: Real = 1e-7,
    *,
    memory_dtype: Any = None,
    keep_count: bool = False,
) -> GradientTransformationExtraArgs:
    """AdaGrad: `p <- p - learning_rate u`, with `u` from `scale_by_rss`.

    Args:
        learning_rate: a number, or a function of the count. The sum grows without end,
            so steps get smaller by themselves.
        initial_accumulator_value, eps: as for `scale_by_rss`.
        memory_dtype, keep_count: as for `keeping`.

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
