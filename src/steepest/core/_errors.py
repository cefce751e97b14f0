"""Errors and warnings: the function, what it got, what it expects, what to do."""

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import FrameType

from ._calling import passed

_SAID_BEFORE: ContextVar[bool] = ContextVar("_SAID_BEFORE", default=False)


class UnusualValueWarning(UserWarning):
    """A value that can be used, but is probably a mistake.

    Silence it with `warnings.simplefilter("ignore", steepest.UnusualValueWarning)`.
    """


@contextmanager
def said_before() -> Iterator[None]:
    """Silence `warn` in this block: the same call has warned before."""
    token = _SAID_BEFORE.set(True)
    try:
        yield
    finally:
        _SAID_BEFORE.reset(token)


def unusual(message: str) -> None:
    """Warn of an unusual value.

    Args:
        message: the text.
    """
    warn(message, UnusualValueWarning)


def warn(message: str, category: type[Warning]) -> None:
    """Warn, and point to the user's line that called this library.

    Args:
        message: the text.
        category: the class of the warning.
    """
    if _SAID_BEFORE.get():
        return
    library = __name__.partition(".")[0]
    frame: FrameType | None = sys._getframe()
    level = 1
    while frame and frame.f_globals.get("__name__", "").startswith(f"{library}."):
        frame = frame.f_back
        level += 1
    warnings.warn(message, category, stacklevel=level)


class MissingArgument(TypeError, ValueError):
    """An `update` was called without something it needs.

    Python raises a TypeError for a missing keyword, and Optax mostly a ValueError for
    missing params. Both `except` clauses catch this error.
    """


class ShardedLeaf(ValueError):
    """A leaf is sharded where every device needs the whole leaf."""


def missing(name: str, *arguments: str) -> MissingArgument:
    """The error for an `update` that was called without required arguments."""
    by_name = "".join(f", {x}=..." for x in arguments if x != "params")
    *first, last = (f"`{x}`" for x in arguments)
    needs = f"{', '.join(first)} and {last}" if first else last
    return MissingArgument(
        f"{name}: `update` needs {needs} and was called without "
        f"{'them' if first else 'it'}. Call `tx.update(grads, state, params{by_name})`."
    )


def not_a_transformation(name: str, place: str, x: object) -> TypeError:
    """The error for something that is not a pair of `init` and `update`."""
    advice = "Pass a transformation, such as `steepest.adam(1e-3)`."
    if isinstance(x, list | tuple):
        advice = f"Unpack it: `{name}(*transformations)`."
    elif callable(x):
        advice = f"Call it first: `{getattr(x, '__name__', 'maker')}(...)`."
    return TypeError(
        f"{passed(name, place, x)} is a {type(x).__name__}, expected a gradient "
        f"transformation (a pair of `init` and `update`). {advice}"
    )
