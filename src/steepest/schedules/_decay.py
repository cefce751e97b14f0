"""Schedules that go from one value to another: constant, polynomial, cosine.

Loshchilov and Hutter, SGDR: stochastic gradient descent with warm restarts, 2017,
arXiv:1608.03983
"""

import math
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float

from ..core import nonnegative, positive, Real, real, Schedule


def constant_schedule(value: Real) -> Schedule:
    """`value`, at every step.

    Args:
        value: any number.

    >>> constant_schedule(0.1)(1000)
    0.1
    """
    (value,) = real("constant_schedule", value=value)
    return lambda count: value


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
        transition_steps: how many steps it takes; 0 to stay at `init_value`.
        transition_begin: the first of them.
    """
    who = "polynomial_schedule"
    init_value, end_value = real(who, init_value=init_value, end_value=end_value)
    power, transition_steps, transition_begin = nonnegative(
        who,
        power=power,
        transition_steps=transition_steps,
        transition_begin=transition_begin,
    )
    if isinstance(transition_steps, int | float) and transition_steps == 0:
        return constant_schedule(init_value)

    def schedule(count: Any) -> Float[Array, "..."]:
        t = jnp.asarray(count) - transition_begin
        # Not `1 - t / steps`: XLA divides by multiplying, and may get below zero.
        left = as_float(jnp.clip(transition_steps - t, 0, transition_steps))
        return (init_value - end_value) * (left / transition_steps) ** power + end_value

    return schedule


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
    return polynomial_schedule(
        init_value, end_value, 1, transition_steps, transition_begin
    )


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
    who = "cosine_decay_schedule"
    init_value, alpha = real(who, init_value=init_value, alpha=alpha)
    (decay_steps,) = positive(who, decay_steps=decay_steps)
    (exponent,) = nonnegative(who, exponent=exponent)

    def schedule(count: Any) -> Float[Array, "..."]:
        t = jnp.minimum(as_float(count), decay_steps) / decay_steps
        c = (1 + jnp.cos(math.pi * t)) / 2
        return init_value * ((1 - alpha) * c**exponent + alpha)

    return schedule


def as_float(count: Any) -> Float[Array, "..."]:
    """Counts as floats, float32 or wider, so that they can be divided."""
    return jnp.asarray(count).astype(float)
