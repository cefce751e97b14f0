"""Schedules one after the other."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

from ..core import Real, Schedule
from ._counts import exact


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

    def schedule(count: Any) -> Any:
        count = exact(count)
        value = schedules[0](count)
        for boundary, after in zip(boundaries, schedules[1:], strict=True):
            # Counts, boundaries and values are the user's: any two dtypes may meet.
            with jax.numpy_dtype_promotion("standard"):
                since, before = count - boundary, count < boundary
            later = after(since)
            with jax.numpy_dtype_promotion("standard"):
                value = jnp.where(before, value, later)
        return value

    return schedule
