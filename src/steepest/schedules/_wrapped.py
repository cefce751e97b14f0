"""A stateful schedule made from a function of the count."""

from typing import NamedTuple

from jax.typing import ArrayLike
from jaxtyping import Array, Int

from .. import check
from ..core import like_optax, Schedule
from ..numerics import increment, zero_count


@like_optax
class WrappedScheduleState(NamedTuple):
    """The position in the schedule."""

    count: Int[Array, ""]  # the number of steps taken


class WrappedSchedule:
    """A `StatefulSchedule` that counts the steps for a plain schedule.

    Args:
        schedule_fn: a schedule, count -> number.

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
        """The state before the first step."""
        return WrappedScheduleState(zero_count())

    def update(
        self, state: WrappedScheduleState, **extra_args: object
    ) -> WrappedScheduleState:
        """The state after one more step.

        Args:
            state: the state that the last call returned.
            extra_args: ignored.
        """
        del extra_args
        return WrappedScheduleState(increment(state.count))

    def __call__(self, state: WrappedScheduleState, **extra_args: object) -> ArrayLike:
        """The value at this count.

        Args:
            state: the state that `update` returned.
            extra_args: ignored.
        """
        del extra_args
        return self.schedule_fn(state.count)
