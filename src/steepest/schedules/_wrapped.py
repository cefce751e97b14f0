"""A schedule with a memory, made of one without."""

from typing import Any, NamedTuple

from jaxtyping import Array, Int

from .. import check
from ..core import like_optax, Schedule
from ..numerics import increment, zero_count


@like_optax
class WrappedScheduleState(NamedTuple):
    """How many steps were taken."""

    count: Int[Array, ""]


class WrappedSchedule:
    """A `StatefulSchedule` that counts the steps for a function of the count.

    Args:
        schedule_fn: step -> number.

    >>> schedule = WrappedSchedule(lambda count: 2 * count)
    >>> state = schedule.update(schedule.init())
    >>> int(schedule(state))
    2
    """

    def __init__(self, schedule_fn: Schedule):
        (self.schedule_fn,) = check.function("WrappedSchedule", schedule_fn=schedule_fn)

    def __eq__(self, other: object) -> bool:
        mine = isinstance(other, WrappedSchedule)
        return mine and self.schedule_fn == other.schedule_fn

    def __hash__(self) -> int:
        return hash(self.schedule_fn)

    def init(self) -> WrappedScheduleState:
        """No step taken."""
        return WrappedScheduleState(zero_count())

    def update(
        self, state: WrappedScheduleState, **extra_args: Any
    ) -> WrappedScheduleState:
        """One more step taken.

        Args:
            state: what the last call returned.
            extra_args: not looked at.
        """
        del extra_args
        return WrappedScheduleState(increment(state.count))

    def __call__(self, state: WrappedScheduleState, **extra_args: Any) -> Any:
        """The number for this count.

        Args:
            state: what `update` returned.
            extra_args: not looked at.
        """
        del extra_args
        return self.schedule_fn(state.count)
