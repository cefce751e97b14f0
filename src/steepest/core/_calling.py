"""Which call of the user's an argument comes from, for error messages.

`sgd(0.1, momentum=2.0)` passes its momentum to `trace`, as `decay`. An error says what
the user wrote: `sgd: momentum is 2.0`.
"""

import inspect
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple


class _Running(NamedTuple):
    """A function that makes a transformation or a schedule, while it runs."""

    name: str
    signature: inspect.Signature
    args: tuple[object, ...]
    kwargs: Mapping[str, object]

    def argument(self, name: str, value: object) -> str | None:
        """The argument that has this very value; `None` if there is no such argument.

        Args:
            name: the likeliest one.
            value: the value.
        """
        bound = self.signature.bind(*self.args, **self.kwargs)
        bound.apply_defaults()
        same = [k for k, x in bound.arguments.items() if x is value]
        if name in same or len(same) != 1:
            return name if name in same else None
        return same[0]


# The functions that run, the one that the user called first.
_RUNNING: ContextVar[tuple[_Running, ...]] = ContextVar("_RUNNING", default=())


@contextmanager
def calling(
    name: str,
    signature: inspect.Signature,
    args: tuple[object, ...],
    kwargs: Mapping[str, object],
) -> Iterator[None]:
    """In this block, a function runs with these arguments.

    Args:
        name: of the function.
        signature: of the function.
        args: its arguments.
        kwargs: its arguments by name.
    """
    running = _Running(name, signature, args, kwargs)
    token = _RUNNING.set((*_RUNNING.get(), running))
    try:
        yield
    finally:
        _RUNNING.reset(token)


@contextmanager
def called_alone() -> Iterator[None]:
    """In this block, a function is called as the user did, whatever runs around it."""
    token = _RUNNING.set(())
    try:
        yield
    finally:
        _RUNNING.reset(token)


def called_by_user(name: str) -> str:
    """The function that the user called, if it makes a transformation or a schedule.

    Args:
        name: the name outside of such functions.
    """
    running = _RUNNING.get()
    return running[0].name if running else name


def passed(name: str, argument: str, value: object) -> str:
    """The beginning of a message about an argument: `sgd: momentum`.

    Args:
        name: of the function that checks the argument.
        argument: its name there.
        value: its value.
    """
    for running in _RUNNING.get():
        known = running.argument(argument, value)
        if known is not None:
            return f"{running.name}: {known}"
    return f"{name}: {argument}"
