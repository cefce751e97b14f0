"""Warm up, stay, decay: a schedule whose run can be extended before the decay.

Hu et al., MiniCPM: unveiling the potential of small language models with scalable
training strategies, 2024, arXiv:2404.06395
Hägele et al., Scaling laws and compute-optimal training beyond fixed training
durations, 2024, arXiv:2405.18392 (`shape="1-sqrt"`)
"""

import math
from typing import get_args, Literal

import jax.numpy as jnp
from jaxtyping import Array

from .. import check
from ..core import Real, Schedule, schedule
from ._counts import among, as_float, of_count, reachable

Shape = Literal["linear", "1-sqrt", "power", "cosine"]


@schedule
def wsd(
    peak_value: Real,
    total_steps: Real,
    warmup_steps: Real,
    decay_steps: Real,
    init_value: Real = 0.0,
    end_value: Real = 0.0,
    shape: Shape = "1-sqrt",
    exponent: Real = 1.2,
) -> Schedule:
    """Warm-up, stable, decay: linear warm-up, constant, and a decay at the end.

        s = (total_steps - count) / decay_steps, between 0 and 1
        value = end_value + (peak_value - end_value) f(s)

        linear: f(s) = s                    power:  f(s) = s^exponent
        1-sqrt: f(s) = 1 - sqrt(1 - s)      cosine: f(s) = (1 - cos(pi s)) / 2

    Until the decay begins, the run does not depend on `total_steps`. So it can be
    extended from there, and one long run can end in decays of several lengths.

    Args:
        peak_value: the value between warm-up and decay.
        total_steps: the number of steps of all three parts together; from there on the
            value is `end_value`.
        warmup_steps: the number of steps of the warm-up; with 0, the value begins at
            `peak_value`.
        decay_steps: the number of steps of the decay, often a fifth of all; with 0, the
            value stays at `peak_value`.
        init_value: the value at step 0.
        end_value: the value at the end of the decay.
        shape: how the value falls: `linear`, `1-sqrt`, `power` or `cosine`.
        exponent: of `power`; an exponent above 1 falls faster at first, and more slowly
            at the end.

    >>> schedule = wsd(1.0, 100, warmup_steps=10, decay_steps=20, shape="linear")
    >>> [round(float(schedule(count)), 2) for count in (0, 5, 10, 80, 95, 100)]
    [0.0, 0.5, 1.0, 1.0, 0.25, 0.0]
    """
    name = "wsd"
    peak_value, init_value, end_value = check.finite(
        name, peak_value=peak_value, init_value=init_value, end_value=end_value
    )
    total, warmup, decay = check.nonnegative.must(
        name,
        total_steps=total_steps,
        warmup_steps=warmup_steps,
        decay_steps=decay_steps,
    )
    (exponent,) = check.nonnegative(name, exponent=exponent)
    check.choice(name, get_args(Shape), shape=shape)
    known = all(isinstance(x, int | float) for x in (total, warmup, decay))
    if known and warmup + decay > total:
        raise ValueError(
            f"{name}: warmup_steps is {warmup} and decay_steps is {decay}, expected at "
            f"most total_steps together, which is {total}."
        )
    total, warmup, decay = map(reachable, (total, warmup, decay))

    def formula(count: Array) -> Array:
        t = among(count, total, warmup, decay)
        up, left = _part(t, warmup), _part(total - t, decay)
        rising = init_value + (peak_value - init_value) * up
        falling = end_value + (peak_value - end_value) * _shaped(left, shape, exponent)
        return jnp.where(t < warmup, rising, falling)

    return of_count(formula)


def _part(t: Array, steps: Real) -> Array:
    """`t / steps`, between 0 and 1; 1 without steps."""
    # Exactly 1 at the end: XLA multiplies by the reciprocal, and 3 / 3 may be below 1.
    done = (t >= steps) | (jnp.asarray(steps) <= 0)
    part = as_float(jnp.maximum(t, 0)) / as_float(jnp.where(done, 1, steps))
    return jnp.where(done, 1.0, part)


def _shaped(s: Array, shape: Shape, exponent: Real) -> Array:
    """`f(s)`, from 0 to 1."""
    if shape == "linear":
        return s
    if shape == "1-sqrt":
        return 1 - jnp.sqrt(1 - s)
    return s**exponent if shape == "power" else (1 - jnp.cos(math.pi * s)) / 2
