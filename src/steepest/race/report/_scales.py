"""Where a value lies on an axis, and which values are written beside it."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from ._numbers import Number, power_of_ten, rate

Tick = tuple[Number, str]  # a value, and how it is written


@dataclass(frozen=True)
class Scale:
    """An axis from `low` at the pixel `start` to `high` at the pixel `end`.

    Attributes:
        low: the value at the start.
        high: the value at the end.
        start: a pixel.
        end: a pixel, on either side of `start`.
        log: whether equal ratios are equal lengths.
        zero: the smallest positive value, if a logarithmic axis has a place for zero at
            its start; else `None`.
    """

    low: Number
    high: Number
    start: Number
    end: Number
    log: bool = False
    zero: Number | None = None

    def __call__(self, value: Number) -> Number:
        """The pixel of a value; one outside of the axis lies a little outside of it."""
        share = (self._bent(value) - self._bent(self.low)) / (
            self._bent(self.high) - self._bent(self.low)
        )
        return self.start + min(max(share, -0.5), 1.5) * (self.end - self.start)

    def ticks(self, most: int) -> list[Tick]:
        """At most so many round values, with their texts."""
        if not self.log:
            return _even(self.low, self.high, most)
        found = _decades(self.zero or self.low, self.high, most)
        return [(0.0, "0"), *found] if self.zero is not None else found

    def _bent(self, value: Number) -> Number:
        return math.log(max(value, self.low)) if self.log else value


def fit(
    values: Iterable[Number],
    start: Number,
    end: Number,
    *,
    log: bool = False,
    pad: Number = 0.05,
) -> Scale:
    """An axis that has a place for all values.

    Args:
        values: what will be drawn; those that are no numbers do not count.
        start: the pixel where the axis begins.
        end: the pixel where it ends.
        log: whether it may be logarithmic: it is, if the values span more than a
            decade and none is below zero.
        pad: which share of the axis is left free at each side.
    """
    found = np.array(list(values), np.float64)
    found = found[np.isfinite(found)]
    if not len(found):
        return Scale(0.0, 1.0, start, end)
    low, high = float(found.min()), float(found.max())
    above = found[found > 0]
    if log and low >= 0 and len(above) and high > 10 * above.min():
        return _logarithmic(float(above.min()), high, start, end, pad, low == 0)
    if low == high:
        room = abs(low) / 10 or 1.0
        return Scale(low - room, high + room, start, end)
    room = pad * (high - low)
    return Scale(low - room, high + room, start, end)


def logarithmic(values: Iterable[Number], start: Number, end: Number) -> Scale:
    """A logarithmic axis, however near to each other the values are.

    Args:
        values: what will be drawn, all of it positive.
        start: the pixel where the axis begins.
        end: the pixel where it ends.
    """
    found = list(values) or [1.0]
    return _logarithmic(min(found), max(found), start, end, 0.04, False)


def _logarithmic(
    low: Number, high: Number, start: Number, end: Number, pad: Number, zero: bool
) -> Scale:
    span = math.log10(high / low)
    room = 10 ** (pad * span or 0.5)
    floor = low / max(10, 10 ** (0.1 * span)) if zero else low / room
    return Scale(floor, high * room, start, end, True, low if zero else None)


def _even(low: Number, high: Number, most: int) -> list[Tick]:
    """Multiples of 1, 2 or 5 times a power of ten."""
    rough = (high - low) / most
    power = math.floor(math.log10(rough))
    steps = [k * 10.0**power for k in (1, 2, 5, 10, 20)]
    step = next(s for s in steps if _count(low, high, s) <= most)
    first = math.ceil(low / step - 1e-9)
    values = [k * step for k in range(first, first + _count(low, high, step))]
    size = max((abs(v) for v in values), default=0.0)
    if size >= 1e6 or size < 1e-3:
        return [(v, rate(float(f"{v:.6g}"))) for v in values]
    digits = max(0, -math.floor(math.log10(step) + 1e-9))
    return [(v, f"{round(v, digits) + 0.0:,.{digits}f}") for v in values]


def _count(low: Number, high: Number, step: Number) -> int:
    return math.floor(high / step + 1e-9) - math.ceil(low / step - 1e-9) + 1


def _decades(low: Number, high: Number, most: int) -> list[Tick]:
    """Powers of ten: every one, or every second, or ...; 1, 2 and 5 times if few."""
    first, last = math.ceil(math.log10(low)), math.floor(math.log10(high))
    plain = low > 9e-4 and high < 2e4
    text = lambda k: f"{10.0**k:g}" if plain else power_of_ten(k)
    if last - first < 2:
        found = [
            (m * 10.0**k, rate(m * 10.0**k) if not plain else f"{m * 10.0**k:g}")
            for k in range(first - 1, last + 1)
            for m in (1, 2, 5)
        ]
        return [(v, t) for v, t in found if low <= v <= high][:most]
    every = next(n for n in range(1, 1000) if (last - first) // n + 1 <= most)
    # Counted from 1, so that 10^0 is among them.
    return [(10.0**k, text(k)) for k in range(first, last + 1) if k % every == 0]
