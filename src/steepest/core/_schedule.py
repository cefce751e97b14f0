"""Schedules that know how they were made."""

from collections.abc import Callable
from typing import Any, TypeVar

import jax

from ._call import Call, Made, recorded
from ._types import Schedule

F = TypeVar("F", bound=Callable[..., Schedule])


class MadeSchedule(Made):
    """A function of the count, as data.

    It prints as the call that makes it; it can be compared, hashed, copied and pickled.
    As a pytree it has the arrays among its arguments for leaves.
    """

    call: Call

    def __init__(self, call: Call):
        self.call = call

    @classmethod
    def of(cls, call: Call) -> "MadeSchedule":
        """What `call` makes."""
        return cls(call)

    def __call__(self, count: Any) -> Any:
        """The value at this count."""
        return self.call.made(count)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MadeSchedule) and self.call == other.call

    def __hash__(self) -> int:
        return hash(self.call)

    def __repr__(self) -> str:
        return repr(self.call)

    def __reduce__(self) -> tuple[Any, ...]:
        return MadeSchedule, (self.call,)

    @property
    def __name__(self) -> str:
        return self.call.name


def schedule(function: F) -> F:
    """Let the schedule that `function` returns know how it was made.

    Args:
        function: one of module level, which makes a schedule and does nothing else.

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
