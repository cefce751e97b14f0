"""Options as texts: what the command line and a file have in common.

A parser takes a text, and says what is wanted if it cannot be read. Whether a race can
be run with the numbers is not its business.
"""

import re
from collections.abc import Callable
from typing import Any

from ..entrants import brief

_TIME = re.compile(r"(?:([\d.]+)h)?(?:([\d.]+)m)?(?:([\d.]+)s)?")
_SECONDS = 3600.0, 60.0, 1.0
_FINEST = 1000  # learning rates in a grid: more is a slip of the finger


def learning_rates(text: str) -> list[float]:
    """Numbers, or grids with equal ratios, in order.

    Args:
        text: such as `1e-4,1e-3`; `1e-4:1:5` are five from the first to the second.

    >>> learning_rates("1e-4:1:5"), learning_rates("0.1, 0.01")
    ([0.0001, 0.001, 0.01, 0.1, 1.0], [0.01, 0.1])
    """
    found: list[float] = []
    for part in _parts(text):
        found += _grid(part) if ":" in part else [number(part)]
    return sorted(found)


def seeds(text: str) -> int | list[int]:
    """How many seeds there are, or which.

    Args:
        text: such as `3`, or `0,1,7`; `7,` is the seed 7 alone.

    >>> seeds("3"), seeds("0,1,7"), seeds("7,")
    (3, [0, 1, 7], [7])
    """
    return [count(part) for part in _parts(text)] if "," in text else count(text)


def count(text: str) -> int:
    """A whole number.

    Args:
        text: such as `1000`.
    """
    return _read(int, text, "whole number")


def number(text: str) -> float:
    """Any number.

    Args:
        text: such as `0.98`.
    """
    return _read(float, text, "number")


def duration(text: str) -> float:
    """A time, in seconds.

    Args:
        text: seconds, or with units: `90s`, `5m`, `1h30m`.

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
            f"{brief(text)} is no time; say `90s`, `5m` or `1h`."
        ) from None


def _read(kind: Callable[[str], Any], text: str, wanted: str) -> Any:
    try:
        return kind(text)
    except ValueError:
        raise ValueError(f"{brief(text)} is no {wanted}.") from None


def _grid(text: str) -> list[float]:
    """From one rate to another, with equal ratios; those between have three digits."""
    wanted = (
        f"{brief(text)} is no grid; say `lowest:highest:how many`, such as `1e-4:1:8`."
    )
    try:
        low, high, many = (float(end) for end in text.split(":"))
    except ValueError:
        raise ValueError(wanted) from None
    if not 0 < low < high < float("inf") or many not in range(2, _FINEST + 1):
        raise ValueError(wanted)
    between = (low * (high / low) ** (k / (many - 1)) for k in range(1, int(many) - 1))
    return [low, *(float(f"{rate:.3g}") for rate in between), high]


def _parts(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]
