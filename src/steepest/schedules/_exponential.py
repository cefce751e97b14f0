"""Exponential decay."""

import jax.numpy as jnp
from jaxtyping import Array

from .. import check
from ..core import Real, Schedule, schedule
from ._counts import among, as_float, of_count, reachable
from ._decay import from_zero, some_steps


@schedule
def exponential_decay(
    init_value: Real,
    transition_steps: Real,
    decay_rate: Real,
    transition_begin: Real = 0,
    staircase: bool = False,
    end_value: Real | None = None,
) -> Schedule:
    """Multiply by `decay_rate` every `transition_steps` steps.

        t = max(count - transition_begin, 0) / transition_steps
        init_value decay_rate^t

    Args:
        init_value: the value until `transition_begin`.
        transition_steps: the number of steps per factor; with 0 or less, or infinity,
            the value stays at `init_value`.
        decay_rate: the factor; with 0, the value stays at `init_value`. It may be
            negative only with `staircase`: fractional powers of it are not real.
        transition_begin: the step at which the decay begins; negative values count as
            0.
        staircase: whether to round `t` down, so that the value changes in steps.
        end_value: the lower bound of the value if `decay_rate` is below 1, otherwise
            the upper bound.

    >>> schedule = exponential_decay(1.0, 10, 0.5)
    >>> float(schedule(10)), float(schedule(20))
    (0.5, 0.25)
    """
    return exponential(
        "exponential_decay",
        init_value,
        transition_steps,
        decay_rate,
        transition_begin,
        staircase,
        end_value,
    )


def exponential(
    name: str,
    init_value: Real,
    transition_steps: Real,
    decay_rate: Real,
    transition_begin: Real,
    staircase: bool,
    end_value: Real | None,
) -> Schedule:
    """`exponential_decay`, for any schedule that is built on it.

    Args:
        name: name used in error messages.
        init_value, transition_steps, decay_rate, transition_begin, staircase,
            end_value: as for `exponential_decay`.
    """
    init_value, rate, begin = check.finite(
        name,
        init_value=init_value,
        decay_rate=decay_rate,
        transition_begin=transition_begin,
    )
    (steps,) = check.real(name, transition_steps=transition_steps)
    end = None if end_value is None else check.finite(name, end_value=end_value)[0]
    check.flag(name, staircase=staircase)
    known = isinstance(rate, int | float)
    if not some_steps(name, steps) or (known and rate == 0):
        return lambda count: init_value
    if known and rate < 0 and not staircase:
        raise ValueError(
            f"{name}: decay_rate is {rate}, expected at least 0: fractional powers of "
            "a negative number are not real. Pass `staircase=True` to allow it."
        )
    begin, steps = from_zero(name, begin), reachable(steps)

    def formula(count: Array) -> Array:
        t = jnp.maximum(among(count, begin, steps), begin) - begin
        # Integers are divided as integers: in floats 3 * (1 / 3) may be below 1.
        t = as_float(t // steps) if staircase else as_float(t) / steps
        base = rate if known else jnp.where(rate == 0, 1, rate)
        value = init_value * base**t
        if end is not None:
            falls = jnp.asarray(rate < 1)
            value = jnp.where(falls, jnp.maximum(value, end), jnp.minimum(value, end))
        return value if known else jnp.where(rate == 0, init_value, value)

    return of_count(formula)
