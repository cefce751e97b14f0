"""Schedules one after the other."""

from collections.abc import Iterable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from .. import check
from ..core import Real, Schedule, schedule
from ._counts import exact, reachable


@schedule
def join_schedules(
    schedules: Sequence[Schedule], boundaries: Sequence[Real]
) -> Schedule:
    """One schedule after the other, each counting from its own beginning.

    Args:
        schedules: in their order.
        boundaries: the steps at which the second, the third, ... begin; none before
            the one in front of it.

    >>> two = join_schedules([lambda t: 10.0, lambda t: t], [5])
    >>> float(two(4)), float(two(7))
    (10.0, 2.0)
    """
    name = "join_schedules"
    parts = check.function(name, **_named("schedules", schedules))
    begins = check.real(name, **_named("boundaries", boundaries))
    if len(parts) != len(begins) + 1:
        raise ValueError(
            f"{name}: got {len(parts)} schedules and {len(begins)} boundaries, "
            "expected one boundary between each two schedules."
        )
    known = [x for x in begins if isinstance(x, int | float)]
    if known != sorted(known):
        raise ValueError(
            f"{name}: boundaries are {known}, expected each at or after the one before "
            "it."
        )
    begins = [reachable(x) for x in begins]

    def schedule(count: Any) -> Any:
        count = exact(count)
        value = parts[0](count)
        for boundary, after in zip(begins, parts[1:], strict=True):
            # Counts, boundaries and values are the user's: any two dtypes may meet.
            with jax.numpy_dtype_promotion("standard"):
                since, before = count - boundary, count < boundary
            later = after(since)
            with jax.numpy_dtype_promotion("standard"):
                value = jnp.where(before, value, later)
        return value

    return schedule


def _named(name: str, values: Any) -> dict[str, Any]:
    """The values, each by the place it has in the argument."""
    if not isinstance(values, Iterable):
        raise TypeError(
            f"join_schedules: {name} is a {type(values).__name__}, expected a list."
        )
    return {f"{name}[{k}]": x for k, x in enumerate(values)}
