"""Errors for arguments that a function does not have."""

import inspect
from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches
from functools import wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


def names_its_arguments(function: Callable[P, T]) -> Callable[P, T]:
    """Decorate a function: its error for an unknown argument names the known ones.

    Args:
        function: a function without `**`.
    """
    name, known = function.__name__, list(inspect.signature(function).parameters)

    @wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> T:
        check_arguments(name, kwargs, known)
        return function(*args, **kwargs)

    return checked


def check_arguments(
    name: str, given: Iterable[str], known: Sequence[str], more: Sequence[str] = ()
) -> None:
    """Raise if an argument does not exist.

    Args:
        name: name used in the message.
        given: the arguments of a call.
        known: the arguments that may be among them.
        more: others that the function has, for the message.
    """
    for argument in given:
        if argument not in known:
            every = [*known, *more]
            near = get_close_matches(argument, every, 1)
            others = f"Others: {', '.join(every)}."
            advice = f"Did you mean `{near[0]}`?" if near else others
            raise TypeError(f"{name}: there is no argument `{argument}`. {advice}")
