"""Nesterov's accelerated gradient, with its second sequence kept explicitly.

Nesterov, A method for solving the convex programming problem with convergence rate
O(1/k^2), 1983
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array, Num

from .. import check
from ..core import (
    gives,
    GradientTransformationExtraArgs,
    Param,
    Params,
    Real,
    Rule,
    ScalarOrSchedule,
)
from ..engine import lift, optimizer
from ..numerics import (
    copy_of,
    first_moment,
    increment,
    number_or_schedule,
    zero_count,
)


class NagState(NamedTuple):
    """State of NAG: a step count, and one array per leaf."""

    count: Num[Array, ""]  # number of steps taken
    phi: Params  # where the last plain gradient step ended


def begin_phi(p: Param) -> Array:
    """The param, which is where a leaf starts whose first gradients are missing."""
    return copy_of(p).astype(first_moment().usual(p))


@gives("carry")
def momentum_after_the_first(
    count: Array, *, momentum: Real
) -> tuple[dict[str, Array], Array]:
    """The momentum, or 0 at the first step, which has no earlier `phi`."""
    carry = jnp.where(count > 0, jnp.asarray(momentum, float), 0)
    return {"carry": carry}, increment(count)


def nag_formula(
    g: Array, p: Array, phi: Array, *, learning_rate: Real, carry: Array
) -> tuple[Array, Array]:
    """One step of NAG for one array."""
    new_phi = p - learning_rate * g
    return carry * (new_phi - phi) - learning_rate * g, new_phi


@optimizer
def nag(
    learning_rate: ScalarOrSchedule,
    momentum: ScalarOrSchedule = 0.9,
    *,
    memory_dtype: DTypeLike | None = None,
    keep_count: bool = False,
) -> GradientTransformationExtraArgs:
    """NAG: take a gradient step to `phi`, then extrapolate from the previous `phi`.

        phi' = p - learning_rate g
        p   <- phi' + momentum (phi' - phi)       at the first step, p <- phi'
        phi <- phi'

    This is `sgd` with Nesterov momentum, except that the first step builds up no
    momentum, because there is no earlier `phi`.

    Args:
        learning_rate: a number, or a schedule (a function of the step count).
        momentum: a number in [0, 1), or a schedule.
        memory_dtype: dtype of the arrays in the state that have no option of their own,
            such as `mu_dtype`, or where it is `None`; by default that of the params, or
            wider. With "int8", "int4" or "float8", averages for large matrices are
            stored in 8 or 4 bits: see `keeping`.
        keep_count: whether to count the steps even if the learning rate is a number, so
            that a schedule can replace it later.

    >>> import jax.numpy as jnp, steepest
    >>> tx, p = steepest.nag(0.01), jnp.array([3.0])
    >>> u, state = tx.update(jnp.array([3.0]), tx.init(p), p)
    >>> round(float((p + u)[0]), 3)
    2.97
    """
    learning_rate = number_or_schedule(check.finite, "nag", learning_rate=learning_rate)
    momentum = number_or_schedule(check.fraction, "nag", momentum=momentum)
    return lift(
        Rule(
            "nag",
            nag_formula,
            NagState,
            memory={"phi": begin_phi},
            shared={"count": zero_count},
            numbers={"learning_rate": learning_rate, "momentum": momentum},
            per_step=momentum_after_the_first,
        )
    )
