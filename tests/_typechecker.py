"""Runtime type checks, made once for all functions with the same signature.

A function inside another is a new function in every call. Beartype would write and
compile the same checks for it each time: a tenth of the time of all tests. jaxtyping
binds the arguments of every call and checks them twice: a sixth.
"""

import contextlib
import functools
from collections.abc import Callable
from types import FunctionType
from typing import Any, NamedTuple

import jaxtyping

_MADE: dict[Any, Callable[..., Any]] = {}
_CHECKS: dict[Any, "Checks"] = {}
_BINDS = "{"  # in the text of an annotation: an axis is computed from the arguments
_theirs = jaxtyping.jaxtyped
_NONE = contextlib.nullcontext()


class Checks(NamedTuple):
    """The checks of a function."""

    arguments: Callable[..., Any]
    result: Callable[..., Any] | None  # `None` without an annotation
    context: Any  # in which the axes of arrays have their sizes


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


def jaxtyped(fn: Any = None, *, typechecker: Any = None) -> Any:
    """`jaxtyping.jaxtyped`, for the same errors with less work in each call.

    Arguments are checked once, and only an error binds them, to name the wrong one.
    """
    if fn is None:
        return functools.partial(jaxtyped, typechecker=typechecker)
    if typechecker is None or not isinstance(fn, FunctionType):
        # It calls us again for the functions of a class or property.
        return _theirs(fn, typechecker=typechecker)
    checks = _checks_of(fn, typechecker)
    if checks is None:
        return _theirs(fn, typechecker=typechecker)
    return _wrapped(fn, checks, typechecker)


def _wrapped(fn: FunctionType, checks: Checks, typechecker: Any) -> Callable[..., Any]:
    @functools.wraps(fn)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        if jaxtyping.config.jaxtyping_disable:
            return fn(*args, **kwargs)
        with checks.context:
            try:
                checks.arguments(*args, **kwargs)
            except Exception:
                return _theirs(fn, typechecker=typechecker)(*args, **kwargs)
            result = fn(*args, **kwargs)
            if checks.result is not None:
                try:
                    checks.result(result)
                except Exception as error:
                    raise jaxtyping.TypeCheckError(
                        "Type-check error whilst checking the return value of "
                        f"{fn.__module__}.{fn.__qualname__}."
                    ) from error
        return result

    return wrapped


# steepest looks at where a function is from, and knows jaxtyping's wrappers.
_wrapped = FunctionType(_wrapped.__code__, {**globals(), "__name__": "jaxtyping"})


def _checks_of(fn: FunctionType, typechecker: Any) -> Checks | None:
    """The checks of a function; `None` if jaxtyping has to make them in each call."""
    hints = tuple(fn.__annotations__.items())
    if _BINDS in str(hints):
        return None
    key = fn.__module__, fn.__qualname__, fn.__code__, hints
    try:
        known = _CHECKS.get(key)
    except TypeError:  # an annotation without a hash
        return None
    if known is None:
        known = _CHECKS[key] = _checks(fn, typechecker)
    return known


def _checks(fn: FunctionType, typechecker: Any) -> Checks:
    made: list[Callable[..., Any]] = []

    def keep(signature: Callable[..., Any]) -> Callable[..., Any]:
        made.append(signature)
        return signature

    # It makes a signature with the result, then one without.
    _theirs(fn, typechecker=keep)
    full, arguments = made
    context = _theirs("context") if "jaxtyping" in str(full.__annotations__) else _NONE
    if "return" not in full.__annotations__:
        return Checks(typechecker(arguments), None, context)

    def result(value):
        return value

    result.__module__ = fn.__module__
    result.__annotations__ = {"return": full.__annotations__["return"]}
    return Checks(typechecker(arguments), typechecker(result), context)
