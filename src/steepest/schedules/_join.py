"""Several schedules in sequence."""

from collections.abc import Iterable, Sequence
from typing import TypeVar

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from .. import check
from ..core import Real, Schedule, schedule
from ._counts import exact, reachable

T = TypeVar("T")


@schedule
def join_schedules(
    schedules: Sequence[Schedule], boundaries: Sequence[Real]
) -> Schedule:
    """Run schedules in sequence, each with a count that starts at zero.

    Args:
        schedules: the schedules, in order.
        boundaries: the steps at which the second, the third, ... schedule begins, in
            ascending order.

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
            "expected one boundary between every two consecutive schedules."
        )
    known = [x for x in begins if isinstance(x, int | float)]
    if known != sorted(known):
        raise ValueError(
            f"{name}: boundaries are {known}, expected ascending order. Sort them."
        )
    begins = [reachable(x) for x in begins]

    def schedule(count: ArrayLike) -> ArrayLike:
        count = exact(count)
        value = parts[0](count)
        for boundary, after in zip(begins, parts[1:], strict=True):
            # Users choose the dtypes of counts, boundaries and values, so any two may
            # have to be promoted.
            with jax.numpy_dtype_promotion("standard"):
                since, before = count - boundary, count < boundary
            later = after(since)
            with jax.numpy_dtype_promotion("standard"):
                value = jnp.where(before, value, later)
        return value

    return schedule


def _named(argument: str, values: Iterable[T]) -> dict[str, T]:
    """The items of an argument, as `{"argument[0]": ..., "argument[1]": ...}`."""
    if not isinstance(values, Iterable):
        raise TypeError(
            f"join_schedules: {argument} is a {type(values).__name__}, expected a list."
        )
    return {f"{argument}[{k}]": x for k, x in enumerate(values)}
