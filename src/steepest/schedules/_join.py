"""Schedules one after the other, and those that begin with a warm-up.

Goyal et al., Accurate, large minibatch SGD: training ImageNet in 1 hour, 2017,
arXiv:1706.02677 (the warm-up)
"""

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float

from ..core import number, Real, Schedule
from ._decay import as_float, cosine_decay_schedule, linear_schedule


def join_schedules(
    schedules: Sequence[Schedule], boundaries: Sequence[Real]
) -> Schedule:
    """One schedule after the other, each counting from its own beginning.

    Args:
        schedules: in their order.
        boundaries: the steps at which the second, the third, ... begin.

    >>> two = join_schedules([lambda t: 10.0, lambda t: t], [5])
    >>> float(two(4)), float(two(7))
    (10.0, 2.0)
    """
    if len(schedules) != len(boundaries) + 1:
        raise ValueError(
            f"join_schedules: got {len(schedules)} schedules and {len(boundaries)} "
            "boundaries, and one boundary between each two schedules is wanted."
        )

    def schedule(count: Any) -> Float[Array, "..."]:
        count = jnp.asarray(count)
        value = as_float(schedules[0](count))
        for boundary, after in zip(boundaries, schedules[1:], strict=True):
            later = as_float(after(count - boundary))
            value = jnp.where(count < boundary, value, later)
        return value

    return schedule


def warmup_cosine_decay_schedule(
    init_value: Real,
    peak_value: Real,
    warmup_steps: Real,
    decay_steps: Real,
    end_value: Real = 0.0,
    exponent: Real = 1.0,
) -> Schedule:
    """Up in a straight line, then down along half a wave of the cosine.

    Args:
        init_value: where the warm-up begins.
        peak_value: where it ends and the decay begins.
        warmup_steps: how many steps it takes.
        decay_steps: how many steps both take together.
        end_value: where the decay ends.
        exponent: as for `cosine_decay_schedule`.
    """
    known = isinstance(decay_steps, int) and isinstance(warmup_steps, int)
    if known and decay_steps <= warmup_steps:
        raise ValueError(
            f"warmup_cosine_decay_schedule: decay_steps is {decay_steps} and "
            f"warmup_steps {warmup_steps}, and more decay_steps than warmup_steps are "
            "wanted: they count the warm-up too."
        )
    peak = as_float(number(peak_value))
    share = jnp.where(peak == 0, 0, number(end_value) / jnp.where(peak == 0, 1, peak))
    return join_schedules(
        [
            linear_schedule(init_value, peak_value, warmup_steps),
            cosine_decay_schedule(
                peak_value, decay_steps - warmup_steps, share, exponent
            ),
        ],
        [warmup_steps],
    )
