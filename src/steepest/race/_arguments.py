"""Errors for arguments that a function does not have."""

import inspect
from collections.abc import Callable
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
        for argument in kwargs:
            if argument not in known:
                raise unknown(name, argument, known)
        return function(*args, **kwargs)

    return checked


def unknown(name: str, argument: str, known: list[str]) -> TypeError:
    """The error for an argument that does not exist.

    Args:
        name: name used in the message.
        argument: the argument.
        known: the arguments that exist.
    """
    near = get_close_matches(argument, known, 1)
    advice = f"Did you mean `{near[0]}`?" if near else f"Others: {', '.join(known)}."
    return TypeError(f"{name}: there is no argument `{argument}`. {advice}")
