"""How forgiving an optimizer is about its learning rate."""

from dataclasses import dataclass
from math import exp, inf, log

import numpy as np

from ._outcome import Better, Sweep

TOLERANCE = 0.02  # of the way from the first evaluation to the best final metric


@dataclass(frozen=True)
class Breadth:
    """The range of good learning rates around the best one.

    A learning rate is good if its final metric lags behind that of the best one by at
    most 2% of the way from the initial metric to there. Between two rates that were
    tried, the metric is interpolated over the logarithm of the rate.

    Attributes:
        low: the lowest good learning rate.
        high: the highest.
        open: whether the range ends at the lowest or the highest rate tried, and so
            may be wider.
        cut: whether it ends next to a rate that halving has stopped, which does not
            count as good, and so may be wider.
    """

    low: float
    high: float
    open: bool
    cut: bool = False

    @property
    def factor(self) -> float:
        """The highest good learning rate divided by the lowest."""
        return self.high / self.low


def breadth(sweep: Sweep, place: int, better: Better) -> Breadth | None:
    """The range of good learning rates; `None` if only one was tried.

    Args:
        sweep: all runs of an optimizer.
        place: index of its best learning rate.
        better: whether a lower or a higher metric wins.
    """
    rates = [rate for rate in sweep.rates if rate is not None]
    ends = sweep.ends.mean(axis=1)
    begin = float(sweep.metric[..., 0].mean())
    lags = lagging(ends, float(ends[place]), begin, better)
    if len(rates) < 2 or not np.isfinite(ends[place]) or lags is None:
        return None
    low, *lower = _end(rates[place::-1], lags[place::-1], sweep.unknown[place::-1])
    high, *upper = _end(rates[place:], lags[place:], sweep.unknown[place:])
    return Breadth(low, high, *map(any, zip(lower, upper, strict=True)))


def lagging(
    metric: np.ndarray, best: float, begin: float, better: Better
) -> np.ndarray | None:
    """How far metrics lag behind the best, as a part of the way from the beginning.

    If a lower metric is better and all values are positive, logarithms are compared.
    `None` if there was no progress, or no finite metric at the beginning.

    Args:
        metric: the metrics; NaN lags infinitely far behind.
        best: the best metric.
        begin: the metric before the first step.
        better: whether a lower or a higher metric wins.
    """
    known = metric[np.isfinite(metric)]
    if better == "lower" and min(begin, best, *known) > 0:
        metric, best, begin = np.log(metric), log(best), log(begin)
    way = best - begin if better == "higher" else begin - best
    if not (np.isfinite(way) and way > 0):
        return None
    behind = best - metric if better == "higher" else metric - best
    return np.where(np.isnan(behind), inf, behind / way)


def _end(
    rates: list[float], lags: np.ndarray, unknown: np.ndarray
) -> tuple[float, bool, bool]:
    """The last good rate in one direction, and why it is the last.

    Whether it is the last one tried, and whether the next one is unknown.
    """
    for k in range(1, len(rates)):
        if lags[k] > TOLERANCE:
            if not np.isfinite(lags[k]):
                return rates[k - 1], False, bool(unknown[k])
            part = (TOLERANCE - lags[k - 1]) / (lags[k] - lags[k - 1])
            between = log(rates[k - 1]) + part * (log(rates[k]) - log(rates[k - 1]))
            return exp(between), False, False
    return rates[-1], True, False
