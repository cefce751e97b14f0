"""Constant, polynomial and cosine schedules.

Loshchilov and Hutter, SGDR: stochastic gradient descent with warm restarts, 2017,
arXiv:1608.03983
"""

import logging
import math

import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array

from .. import check
from ..core import Real, Schedule, schedule
from ._counts import among, as_float, of_count, reachable

_log = logging.getLogger(__name__)


@schedule
def constant_schedule(value: ArrayLike) -> Schedule:
    """`value`, at every step.

    Args:
        value: a number or an array, returned unchanged.

    >>> constant_schedule(0.1)(1000)
    0.1
    """
    if np.ndim(value) == 0:
        check.real("constant_schedule", value=value)
    return lambda count: value


@schedule
def polynomial_schedule(
    init_value: Real,
    end_value: Real,
    power: Real,
    transition_steps: Real,
    transition_begin: Real = 0,
) -> Schedule:
    """Polynomial transition from one value to another.

        t = min(max(count - transition_begin, 0), transition_steps)
        (init_value - end_value) (1 - t / transition_steps)^power + end_value

    Args:
        init_value: the value until `transition_begin`.
        end_value: the value from `transition_begin + transition_steps` on.
        power: 1 for a straight line; a larger power changes faster at the start.
        transition_steps: the number of steps of the transition; with 0 or less, or
            infinity, the value stays at `init_value`.
        transition_begin: the first step of the transition; negative values count as 0.
    """
    return polynomial(
        "polynomial_schedule",
        init_value,
        end_value,
        power,
        transition_steps,
        transition_begin,
    )


def polynomial(
    name: str,
    init_value: Real,
    end_value: Real,
    power: Real,
    transition_steps: Real,
    transition_begin: Real = 0,
) -> Schedule:
    """`polynomial_schedule`, for any schedule that is built on it.

    Args:
        name: name used in error messages.
        init_value, end_value, power, transition_steps, transition_begin: as for
            `polynomial_schedule`.
    """
    init_value, end_value, begin = check.finite(
        name,
        init_value=init_value,
        end_value=end_value,
        transition_begin=transition_begin,
    )
    (power,) = check.nonnegative(name, power=power)
    (steps,) = check.real(name, transition_steps=transition_steps)
    if not some_steps(name, steps):
        return lambda count: init_value
    begin, steps = from_zero(name, begin), reachable(steps)

    def formula(count: Array) -> Array:
        t = jnp.maximum(among(count, begin, steps), begin) - begin
        # Not `1 - t / steps`: XLA multiplies by the reciprocal, and the result may be
        # below zero.
        left = as_float(jnp.clip(steps - t, 0, steps))
        # For the same reason 3 / 3 may be above one, and a warm-up start below zero.
        part = jnp.where(t == 0, 1.0, left / steps)
        return (init_value - end_value) * part**power + end_value

    return of_count(formula)


@schedule
def linear_schedule(
    init_value: Real,
    end_value: Real,
    transition_steps: Real,
    transition_begin: Real = 0,
) -> Schedule:
    """Linear transition: `polynomial_schedule` with power 1.

    Args:
        init_value: the value until `transition_begin`.
        end_value: the value from `transition_begin + transition_steps` on.
        transition_steps: the number of steps of the transition; with 0 or less, or
            infinity, the value stays at `init_value`.
        transition_begin: the first step of the transition; negative values count as 0.

    >>> float(linear_schedule(0.0, 1.0, transition_steps=4)(1))
    0.25
    """
    return polynomial(
        "linear_schedule",
        init_value,
        end_value,
        1,
        transition_steps,
        transition_begin,
    )


@schedule
def cosine_decay_schedule(
    init_value: Real, decay_steps: Real, alpha: Real = 0.0, exponent: Real = 1.0
) -> Schedule:
    """Cosine decay.

        c = (1 + cos(pi min(count, decay_steps) / decay_steps)) / 2
        init_value ((1 - alpha) c^exponent + alpha)

    Args:
        init_value: the value at step 0.
        decay_steps: the number of steps of the decay.
        alpha: the final value, as a fraction of `init_value`.
        exponent: an exponent above 1 makes the value fall earlier.
    """
    return cosine("cosine_decay_schedule", init_value, decay_steps, alpha, exponent)


def cosine(
    name: str, init_value: Real, decay_steps: Real, alpha: Real, exponent: Real
) -> Schedule:
    """`cosine_decay_schedule`, for any schedule that is built on it.

    Args:
        name: name used in error messages.
        init_value, decay_steps, alpha, exponent: as for `cosine_decay_schedule`.
    """
    init_value, alpha = check.finite(name, init_value=init_value, alpha=alpha)
    (exponent,) = check.nonnegative(name, exponent=exponent)
    (decay_steps,) = check.positive.must(name, decay_steps=decay_steps)
    if isinstance(decay_steps, int):
        decay_steps = float(decay_steps)  # 10**10 does not fit in an int32

    def formula(count: Array) -> Array:
        t = jnp.minimum(as_float(count), decay_steps) / decay_steps
        c = (1 + jnp.cos(math.pi * t)) / 2
        return init_value * ((1 - alpha) * c**exponent + alpha)

    return of_count(formula)


def some_steps(name: str, steps: Real) -> bool:
    """Whether the transition has steps; logs a message if it has none.

    A traced number counts as having steps.

    Args:
        name: name used in the message.
        steps: its `transition_steps`.
    """
    none = isinstance(steps, int | float) and not 0 < steps < math.inf
    if none:
        _log.info(
            "%s: transition_steps is %s; the value stays at init_value.", name, steps
        )
    return not none


def from_zero(name: str, begin: Real) -> Real:
    """The first step, or 0 if it is negative, as in Optax.

    Args:
        name: name used in the message.
        begin: its `transition_begin`.
    """
    if not isinstance(begin, int | float):
        return jnp.maximum(begin, 0)
    if begin < 0:
        _log.info(
            "%s: transition_begin is %s; the transition begins at step 0.", name, begin
        )
    return reachable(max(begin, 0))
