"""Schedules that begin with a linear warm-up.

Goyal et al., Accurate, large minibatch SGD: training ImageNet in 1 hour, 2017,
arXiv:1706.02677 (the warm-up)
Loshchilov and Hutter, SGDR: stochastic gradient descent with warm restarts, 2017,
arXiv:1608.03983
"""

import inspect
from collections.abc import Iterable, Mapping
from itertools import accumulate

import jax.numpy as jnp

from .. import check
from ..core import Real, Schedule, schedule
from ._counts import as_float
from ._decay import cosine, polynomial
from ._exponential import exponential
from ._join import join_schedules


@schedule
def warmup_constant_schedule(
    init_value: Real, peak_value: Real, warmup_steps: Real
) -> Schedule:
    """Linear warm-up, then constant.

    Args:
        init_value: the value at step 0.
        peak_value: the value after the warm-up.
        warmup_steps: the number of steps of the warm-up; with 0 or less, the value
            stays at `init_value`.
    """
    return _warmup("warmup_constant_schedule", init_value, peak_value, warmup_steps)


@schedule
def warmup_cosine_decay_schedule(
    init_value: Real,
    peak_value: Real,
    warmup_steps: Real,
    decay_steps: Real,
    end_value: Real = 0.0,
    exponent: Real = 1.0,
) -> Schedule:
    """Linear warm-up, then cosine decay.

    Args:
        init_value: the value at step 0.
        peak_value: the value at the end of the warm-up.
        warmup_steps: the number of steps of the warm-up.
        decay_steps: the number of steps of the warm-up and the decay together.
        end_value: the value at the end of the decay.
        exponent: an exponent above 1 makes the value fall earlier.
    """
    return _warmup_cosine(
        "warmup_cosine_decay_schedule",
        init_value,
        peak_value,
        warmup_steps,
        decay_steps,
        end_value,
        exponent,
    )


def _warmup_cosine(
    name: str,
    init_value: Real,
    peak_value: Real,
    warmup_steps: Real,
    decay_steps: Real,
    end_value: Real,
    exponent: Real,
) -> Schedule:
    """`warmup_cosine_decay_schedule`, with the name used in error messages."""
    up = _warmup(name, init_value, peak_value, warmup_steps)
    peak_value, end_value = check.finite(
        name, peak_value=peak_value, end_value=end_value
    )
    warmup, steps = check.nonnegative(
        name, warmup_steps=warmup_steps, decay_steps=decay_steps
    )
    known = isinstance(steps, int | float) and isinstance(warmup, int | float)
    if known and not steps > warmup:
        raise ValueError(
            f"{name}: decay_steps is {steps} and warmup_steps is {warmup}, expected "
            "more decay_steps than warmup_steps: they include the warm-up."
        )
    share = _share(end_value, peak_value)
    down = cosine(name, peak_value, steps - warmup, share, exponent)
    return join_schedules([up, down], [warmup])


def _share(end: Real, peak: Real) -> Real:
    """`end / peak`, or 0 if `peak` is 0."""
    if isinstance(peak, int | float):
        return end / peak if peak else 0.0
    safe = as_float(peak)
    return jnp.where(safe == 0, 0, end / jnp.where(safe == 0, 1, safe))


@schedule
def warmup_exponential_decay_schedule(
    init_value: Real,
    peak_value: Real,
    warmup_steps: Real,
    transition_steps: Real,
    decay_rate: Real,
    transition_begin: Real = 0,
    staircase: bool = False,
    end_value: Real | None = None,
) -> Schedule:
    """Linear warm-up, then exponential decay.

    Args:
        init_value: the value at step 0.
        peak_value: the value at the end of the warm-up.
        warmup_steps: the number of steps of the warm-up.
        transition_steps: the number of steps per factor of `decay_rate`; with 0 or
            less, or infinity, the value stays at `peak_value`.
        decay_rate: the factor of the decay; with 0, the value stays at `peak_value`.
            It may be negative only with `staircase`.
        transition_begin: the number of steps between the warm-up and the decay.
        staircase: whether the value changes only every `transition_steps` steps.
        end_value: the lower bound of the value if `decay_rate` is below 1, otherwise
            the upper bound.
    """
    name = "warmup_exponential_decay_schedule"
    up = _warmup(name, init_value, peak_value, warmup_steps)
    down = exponential(
        name,
        peak_value,
        transition_steps,
        decay_rate,
        transition_begin,
        staircase,
        end_value,
    )
    return join_schedules(
        [up, down], check.nonnegative(name, warmup_steps=warmup_steps)
    )


@schedule
def sgdr_schedule(cosine_kwargs: Iterable[Mapping[str, Real]]) -> Schedule:
    """Cosine decay with warm restarts.

    Args:
        cosine_kwargs: for each cycle, the arguments of `warmup_cosine_decay_schedule`;
            `decay_steps` is the length of the cycle.

    >>> cycle = dict(init_value=0.0, peak_value=1.0, warmup_steps=2, decay_steps=10)
    >>> schedule = sgdr_schedule([cycle, {**cycle, "peak_value": 0.5}])
    >>> [float(schedule(count)) for count in (2, 10, 12)]
    [1.0, 0.0, 0.5]
    """
    if not isinstance(cosine_kwargs, Iterable):
        raise TypeError(
            f"sgdr_schedule: cosine_kwargs is a {type(cosine_kwargs).__name__}, "
            "expected a list of dicts."
        )
    cycles = list(cosine_kwargs)
    if not cycles:
        raise ValueError("sgdr_schedule: got no cycles, expected at least one.")
    parts = [_cycle(k, cycle) for k, cycle in enumerate(cycles)]
    ends = accumulate(cycle["decay_steps"] for cycle in cycles)
    return join_schedules(parts, list(ends)[:-1])


def _cycle(k: int, cycle: Mapping[str, Real]) -> Schedule:
    """The schedule of cycle `k`; its error messages name the cycle."""
    name = f"sgdr_schedule: cosine_kwargs[{k}]"
    if not isinstance(cycle, Mapping):
        raise TypeError(
            f"{name} is a {type(cycle).__name__}, expected a dict of the arguments of "
            "`warmup_cosine_decay_schedule`."
        )
    try:
        bound = inspect.signature(warmup_cosine_decay_schedule).bind(**cycle)
    except TypeError as error:
        raise TypeError(
            f"{name}: {error}. Pass the arguments of `warmup_cosine_decay_schedule`."
        ) from None
    bound.apply_defaults()
    return _warmup_cosine(name, **bound.arguments)


def _warmup(
    name: str, init_value: Real, peak_value: Real, warmup_steps: Real
) -> Schedule:
    check.finite(
        name, init_value=init_value, peak_value=peak_value, warmup_steps=warmup_steps
    )
    return polynomial(name, init_value, peak_value, 1, warmup_steps)
