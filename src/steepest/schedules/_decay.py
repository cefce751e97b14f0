"""Schedules that go from one value to another: constant, polynomial, cosine.

Loshchilov and Hutter, SGDR: stochastic gradient descent with warm restarts, 2017,
arXiv:1608.03983
"""

import logging
import math
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from .. import check
from ..core import Real, Schedule, schedule
from ._counts import among, as_float, of_count, reachable

_log = logging.getLogger(__name__)


@schedule
def constant_schedule(value: Any) -> Schedule:
    """`value`, at every step.

    Args:
        value: any number; an array is handed back as it is.

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
    """From one value to another, along a power of the way that is left.

        t = min(max(count - transition_begin, 0), transition_steps)
        (init_value - end_value) (1 - t / transition_steps)^power + end_value

    Args:
        init_value: the value until `transition_begin`.
        end_value: the value from `transition_begin + transition_steps` on.
        power: 1 for a straight line; more, and most of the way is gone at the start.
        transition_steps: how many steps it takes; 0 or less, or infinity, to stay at
            `init_value`.
        transition_begin: the first of them; below 0 it is taken as 0.
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
    """`polynomial_schedule` for the schedule `name`, which speaks in its errors.

    Args:
        name: the schedule the user called.
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

    def formula(count: Array) -> Any:
        t = jnp.maximum(among(count, begin, steps), begin) - begin
        # Not `1 - t / steps`: XLA divides by multiplying, and may get below zero.
        left = as_float(jnp.clip(steps - t, 0, steps))
        # For the same reason 3 / 3 may be above one, and a warm-up begin below zero.
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
    """`polynomial_schedule` with power 1: a straight line.

    Args:
        init_value, end_value, transition_steps, transition_begin: as for
            `polynomial_schedule`.

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
    """Down along half a wave of the cosine.

        c = (1 + cos(pi min(count, decay_steps) / decay_steps)) / 2
        init_value ((1 - alpha) c^exponent + alpha)

    Args:
        init_value: the value at step 0.
        decay_steps: how many steps it takes.
        alpha: what is left in the end, as a share of `init_value`.
        exponent: above 1 it falls earlier.
    """
    return cosine("cosine_decay_schedule", init_value, decay_steps, alpha, exponent)


def cosine(
    name: str, init_value: Real, decay_steps: Real, alpha: Real, exponent: Real
) -> Schedule:
    """`cosine_decay_schedule` for the schedule `name`, which speaks in its errors.

    Args:
        name: the schedule the user called.
        init_value, decay_steps, alpha, exponent: as for `cosine_decay_schedule`.
    """
    init_value, alpha = check.finite(name, init_value=init_value, alpha=alpha)
    (exponent,) = check.nonnegative(name, exponent=exponent)
    (decay_steps,) = check.positive.must(name, decay_steps=decay_steps)
    if isinstance(decay_steps, int):
        decay_steps = float(decay_steps)  # 10**10 is no int32

    def formula(count: Array) -> Any:
        t = jnp.minimum(as_float(count), decay_steps) / decay_steps
        c = (1 + jnp.cos(math.pi * t)) / 2
        return init_value * ((1 - alpha) * c**exponent + alpha)

    return of_count(formula)


def some_steps(name: str, steps: Any) -> bool:
    """Whether there is a step to take, where that is known; says so where there is not.

    Args:
        name: the schedule the user called.
        steps: its `transition_steps`.
    """
    none = isinstance(steps, int | float) and not 0 < steps < math.inf
    if none:
        _log.info("%s: transition_steps is %s: it stays at init_value.", name, steps)
    return not none


def from_zero(name: str, begin: Any) -> Any:
    """The first step, and 0 where it is negative, as Optax takes it.

    Args:
        name: the schedule the user called.
        begin: its `transition_begin`.
    """
    if not isinstance(begin, int | float):
        return jnp.maximum(begin, 0)
    if begin < 0:
        _log.info("%s: transition_begin is %s: it begins at 0.", name, begin)
    return reachable(max(begin, 0))
