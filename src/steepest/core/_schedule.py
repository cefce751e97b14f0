"""Schedules that know how they were made."""

from collections.abc import Callable
from typing import TypeVar

import jax
from jax.typing import ArrayLike

from ._call import Call, Made, recorded
from ._types import Schedule
from ._written import written

F = TypeVar("F", bound=Callable[..., Schedule])


class MadeSchedule(Made):
    """A function of the count, as data.

    It prints as the call that made it, and it can be compared, hashed, copied and
    pickled. It is a pytree whose leaves are the arrays among its arguments.
    """

    call: Call

    def __init__(self, call: Call):
        self.call = call

    @classmethod
    def of(cls, call: Call) -> "MadeSchedule":
        """The result of `call`."""
        return cls(call)

    def __call__(self, count: ArrayLike) -> ArrayLike:
        """The value at this count."""
        return self.call.made(count)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MadeSchedule) and self.call == other.call

    def __hash__(self) -> int:
        return hash(self.call)

    def __repr__(self) -> str:
        return written(self)

    def __reduce__(self) -> tuple[object, ...]:
        return MadeSchedule, (self.call,)

    @property
    def __name__(self) -> str:
        return self.call.name


def schedule(function: F) -> F:
    """Decorate a function that makes a schedule: the result knows its call.

    Args:
        function: a function at module level that only makes a schedule.

    >>> import steepest
    >>> steepest.constant_schedule(0.1)
    constant_schedule(value=0.1)
    """
    return recorded("schedule", function, MadeSchedule, lambda name, f: f)


jax.tree_util.register_pytree_with_keys(
    MadeSchedule,
    lambda x: x.call.flatten_with_keys(),
    lambda static, arrays: MadeSchedule(Call.unflatten(static, arrays)),
    lambda x: x.call.flatten(),
)
