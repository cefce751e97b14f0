"""Parsers of options, shared by the command line and the TOML file.

A parser turns a string into a value, or says what it expected. `race` itself checks
that the values are in range.
"""

import ast
import re
from collections.abc import Callable
from typing import TypeVar

from ..entrants import brief, split_list

T = TypeVar("T")
_TIME = re.compile(r"(?:([\d.]+)h)?(?:([\d.]+)m)?(?:([\d.]+)s)?")
_SECONDS = 3600.0, 60.0, 1.0
LOGGERS = "wandb", "trackio", "tensorboard"
_FINEST = 1000  # learning rates in a grid: more is surely a typo


def learning_rates(text: str) -> list[float]:
    """Parse a sorted list of numbers and geometric grids.

    Args:
        text: such as `1e-4,1e-3`; `1e-4:1:5` is five values from 1e-4 to 1.

    >>> learning_rates("1e-4:1:5"), learning_rates("0.1, 0.01")
    ([0.0001, 0.001, 0.01, 0.1, 1.0], [0.01, 0.1])
    """
    rates: list[float] = []
    for part in _parts(text):
        rates += _grid(part) if ":" in part else [number(part)]
    return sorted(rates)


def seeds(text: str) -> int | list[int]:
    """Parse the number of seeds, or a list of them.

    Args:
        text: such as `3`, or `0,1,7`; `7,` is only seed 7.

    >>> seeds("3"), seeds("0,1,7"), seeds("7,")
    (3, [0, 1, 7], [7])
    """
    return [count(part) for part in _parts(text)] if "," in text else count(text)


def count(text: str) -> int:
    """Parse a whole number.

    Args:
        text: such as `1000`.
    """
    return _read(int, text, "whole number")


def number(text: str) -> float:
    """Parse a number.

    Args:
        text: such as `0.98`.
    """
    return _read(float, text, "number")


def duration(text: str) -> float:
    """Parse a duration, in seconds.

    Args:
        text: a number of seconds, or a time with units: `90s`, `5m`, `1h30m`.

    >>> duration("90"), duration("5m"), duration("1h30m")
    (90.0, 300.0, 5400.0)
    """
    tidy = text.lower().replace(" ", "")
    parts = _TIME.fullmatch(tidy)
    try:
        if parts is None or not tidy:
            return float(tidy)
        units = zip(parts.groups(), _SECONDS, strict=True)
        return sum(float(some) * unit for some, unit in units if some)
    except ValueError:
        raise ValueError(
            f"{brief(text)} is not a time, expected `90s`, `5m` or `1h`, for example."
        ) from None


def logger(text: str) -> str:
    """Parse the name of a logger.

    Args:
        text: `wandb`, `trackio` or `tensorboard`.
    """
    if text not in LOGGERS:
        raise ValueError(
            f"{brief(text)} is not a logger, expected one of: {', '.join(LOGGERS)}."
        )
    return text


def sweep(text: str) -> dict[str, list[object]]:
    """Parse the values of a second hyperparameter, or of several.

    Args:
        text: such as `weight_decay=0,0.1`. Words are strings.

    >>> sweep("weight_decay=0,0.1, nesterov=True,False")
    {'weight_decay': [0, 0.1], 'nesterov': [True, False]}
    """
    values: dict[str, list[object]] = {}
    for part in split_list(text):
        name, equals, value = part.partition("=")
        if equals:
            name = name.strip()
            if name in values:
                raise ValueError(f"`{name}` is set twice.")
            values[name] = []
        if not values:
            raise ValueError(
                f"{brief(text)} is not a sweep, expected `name=values`, such as "
                "`weight_decay=0,0.01,0.1`."
            )
        [*values.values()][-1].append(_value(value.strip() if equals else part))
    return values


def _value(text: str) -> object:
    """A number, True, False, None or a string."""
    try:
        return ast.literal_eval(text)
    except (SyntaxError, ValueError):
        if text.isidentifier():
            return text
    raise ValueError(f"{brief(text)} is not a value, expected a number or a word.")


def _read(kind: Callable[[str], T], text: str, expected: str) -> T:
    try:
        return kind(text)
    except ValueError:
        raise ValueError(f"{brief(text)} is not a {expected}.") from None


def _grid(text: str) -> list[float]:
    """A geometric grid. Inner values are rounded to three significant digits."""
    message = (
        f"{brief(text)} is not a grid, expected `lowest:highest:count`, such as "
        "`1e-4:1:8`."
    )
    try:
        low, high, many = (float(end) for end in text.split(":"))
    except ValueError:
        raise ValueError(message) from None
    if not 0 < low < high < float("inf") or many not in range(2, _FINEST + 1):
        raise ValueError(message)
    between = (low * (high / low) ** (k / (many - 1)) for k in range(1, int(many) - 1))
    return [low, *(float(f"{rate:.3g}") for rate in between), high]


def _parts(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]
