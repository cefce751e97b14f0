"""Loads a problem by name."""

from collections.abc import Callable
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path

from .._problem import Problem
from ..entrants import brief, described, imported, reason_of
from ._known import EMBEDDED

_UNNAMED = Problem.__dataclass_fields__["name"].default


def load(text: str) -> Problem:
    """Load a built-in problem, or one of your own.

    Args:
        text: a name such as `digits`; or `module:attribute`, or
            `folder/file.py:attribute`, where the attribute is a `Problem` or a function
            without arguments that returns one. Modules are also searched for in the
            current folder.

    >>> load("rosenbrock").measure
    'f'
    """
    if not isinstance(text, str):
        raise TypeError(
            f"race: the problem is a {type(text).__name__}, expected one of: "
            f"{_listed()}, or `module:attribute`."
        )
    if text in EMBEDDED:
        return replace(EMBEDDED[text](), source=text)
    _, colon, attribute = text.rpartition(":")
    if not colon:
        raise ValueError(_unknown(text))
    problem = imported(text, "problem", lambda x: isinstance(x, Problem))
    if callable(problem) and not isinstance(problem, Problem | type):
        problem = _called(problem, text)
    if not isinstance(problem, Problem):
        raise TypeError(
            f"race: {text} is {described(problem)}, expected a "
            "`steepest.race.Problem` or a function that returns one."
        )
    name = attribute if problem.name == _UNNAMED else problem.name
    return replace(problem, name=name, source=text)


def _listed() -> str:
    return ", ".join(f"`{name}`" for name in EMBEDDED)


def _unknown(text: str) -> str:
    near = get_close_matches(text.lower().replace("-", "_")[:99], EMBEDDED)
    meant = f" Did you mean `{near[0]}`?" if near else ""
    if Path(text).suffix == ".py" or "." in text:
        meant = f" Add the name of the problem in it: `{brief(text)[1:-1]}:problem`."
    return (
        f"race: there is no problem {brief(text)}.{meant} Built-in problems: "
        f"{_listed()}. Your own: `module:attribute`."
    )


def _called(f: Callable[..., object], text: str) -> object:
    try:
        return f()
    except (Exception, SystemExit) as error:
        raise TypeError(
            f"race: {text} is a function, and calling it without arguments fails. "
            f"{reason_of(error)}"
        ) from error
