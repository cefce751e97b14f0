"""Runtime type checks, made once for all functions with the same signature.

A function inside another is a new function in every call. Beartype would write and
compile the same checks for it each time: a tenth of the time of all tests.
"""

from collections.abc import Callable
from typing import Any

_MADE: dict[Any, Callable[..., Any]] = {}


def checked(signature: Callable[..., Any]) -> Callable[..., Any]:
    """Beartype's checks of `signature`, a function with an empty body.

    jaxtyping makes it from a function of steepest, with its names and annotations.
    """
    import beartype  # the stored runs of `peers` are made without it

    hints = tuple(signature.__annotations__.items())
    key = signature.__module__, signature.__qualname__, signature.__code__, hints
    try:
        known = _MADE.get(key)
    except TypeError:  # an annotation without a hash
        return beartype.beartype(signature)
    if known is None:
        known = _MADE[key] = beartype.beartype(signature)
    return known
