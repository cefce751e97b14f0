"""Axis scales and ticks."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from ._numbers import Number, power_of_ten, rate

Tick = tuple[Number, str]  # a value and its label


@dataclass(frozen=True)
class Scale:
    """An axis from `low` at the pixel `start` to `high` at the pixel `end`.

    Attributes:
        low: the value at the start.
        high: the value at the end.
        start: a pixel.
        end: a pixel, on either side of `start`.
        log: whether the axis is logarithmic.
        zero: the smallest positive value, if a logarithmic axis shows 0 at its start;
            else `None`.
    """

    low: Number
    high: Number
    start: Number
    end: Number
    log: bool = False
    zero: Number | None = None

    def __call__(self, value: Number) -> Number:
        """The pixel of a value; values outside the axis are clipped just outside it."""
        share = (self._bent(value) - self._bent(self.low)) / (
            self._bent(self.high) - self._bent(self.low)
        )
        return self.start + min(max(share, -0.5), 1.5) * (self.end - self.start)

    def ticks(self, most: int) -> list[Tick]:
        """At most `most` round values, with their labels."""
        if not self.log:
            return _even(self.low, self.high, most)
        decades = _decades(self.zero or self.low, self.high, most)
        return [(0.0, "0"), *decades] if self.zero is not None else decades

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
    """Fit an axis to values.

    Args:
        values: what will be drawn; values that are not finite are ignored.
        start: the pixel where the axis begins.
        end: the pixel where it ends.
        log: whether it may be logarithmic. It is if the values span more than a decade
            and none is negative.
        pad: fraction of the axis left free at each end.
    """
    finite = np.array(list(values), np.float64)
    finite = finite[np.isfinite(finite)]
    if not len(finite):
        return Scale(0.0, 1.0, start, end)
    low, high = float(finite.min()), float(finite.max())
    above = finite[finite > 0]
    if log and low >= 0 and len(above) and high > 10 * above.min():
        return _logarithmic(float(above.min()), high, start, end, pad, low == 0)
    if low == high:
        room = abs(low) / 10 or 1.0
        return Scale(low - room, high + room, start, end)
    room = pad * (high - low)
    return Scale(low - room, high + room, start, end)


def logarithmic(values: Iterable[Number], start: Number, end: Number) -> Scale:
    """Fit a logarithmic axis to values, even if they span less than a decade.

    Args:
        values: what will be drawn; all are positive.
        start: the pixel where the axis begins.
        end: the pixel where it ends.
    """
    known = list(values) or [1.0]
    return _logarithmic(min(known), max(known), start, end, 0.04, False)


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
    """Powers of ten, or every n-th of them; if there are few, also 2 and 5 times."""
    first, last = math.ceil(math.log10(low)), math.floor(math.log10(high))
    plain = low > 9e-4 and high < 2e4
    text = lambda k: f"{10.0**k:g}" if plain else power_of_ten(k)
    if last - first < 2:
        ticks = [
            (m * 10.0**k, rate(m * 10.0**k) if not plain else f"{m * 10.0**k:g}")
            for k in range(first - 1, last + 1)
            for m in (1, 2, 5)
        ]
        return [(v, t) for v, t in ticks if low <= v <= high][:most]
    every = next(n for n in range(1, 1000) if (last - first) // n + 1 <= most)
    # Multiples of `every`, so that 10^0 is among them.
    return [(10.0**k, text(k)) for k in range(first, last + 1) if k % every == 0]
