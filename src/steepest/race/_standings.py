"""Who won, by how much, and whether that means anything."""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from ._outcome import Better, Outcome, Rate, Sweep
from ._significance import holm, welch

Verdict = Literal["best", "no clear difference", "worse", "diverged"]
LEVEL = 0.05  # how often a difference may be called significant that is none


@dataclass(frozen=True)
class Standing:
    """An optimizer at its best learning rate: a row of the table.

    Attributes:
        sweep: all its runs.
        place: of its best learning rate, among those tried.
        edge: whether that is the lowest or the highest one tried, so that a better one
            may lie outside.
        metric: the mean over the seeds, at the end.
        spread: the standard deviation over the seeds.
        steps_to_target: the mean over the seeds; `None` if one never gets there.
        seconds_to_target: the same in seconds of one run.
        diverged: how many of all its runs diverged.
        p: how likely a difference to the best as large as this is by chance; `None`
            for the best, and where there are less than two seeds.
        verdict: in words.
        logarithms: whether `p` is about the logarithms of the metrics.
    """

    sweep: Sweep
    place: int
    edge: bool
    metric: float
    spread: float
    steps_to_target: float | None
    seconds_to_target: float | None
    diverged: int
    p: float | None = None
    verdict: Verdict = "best"
    logarithms: bool = False

    @property
    def name(self) -> str:
        """The optimizer's name."""
        return self.sweep.name

    @property
    def rate(self) -> Rate:
        """Its best learning rate."""
        return self.sweep.rates[self.place]

    @property
    def ends(self) -> np.ndarray:
        """(seeds,), the metric at the end."""
        return self.sweep.metric[self.place, :, -1]


def standings(outcome: Outcome) -> list[Standing]:
    """A row for each optimizer, the best one first.

    A learning rate is judged by the mean of the metric over the seeds, at the end; one
    at which a run diverged comes after all others. The difference to the best optimizer
    is tested by Welch's test over the seeds, with Holm's correction for the number of
    comparisons. Of a metric that is to be low, and is above zero, the logarithms are
    compared: 1e-9 is far from 1e-3, however far both are from 1.

    Args:
        outcome: of a race.
    """
    better, target = outcome.better, outcome.target
    rows = [standing(sweep, better, target) for sweep in outcome.sweeps]
    rows.sort(key=lambda row: worth(row.metric, better), reverse=True)
    if not rows or np.isnan(rows[0].metric):
        return [replace(row, verdict="diverged") for row in rows]
    first, rest = rows[0], rows[1:]
    rest = [replace(row, logarithms=_by_factors(first, row, better)) for row in rest]
    pairs = zip(rest, holm([_likely(first, row) for row in rest]), strict=True)
    return [first, *(_judged(row, p) for row, p in pairs)]


def worth(metric: float | np.ndarray, better: Better) -> np.ndarray:
    """The metric, so that more is better; what is no number is least of all.

    Args:
        metric: one, or several.
        better: whether a lower or a higher metric wins.
    """
    signed = metric if better == "higher" else -metric
    return np.where(np.isnan(metric), -np.inf, signed)


def standing(sweep: Sweep, better: Better, target: float | None = None) -> Standing:
    """An optimizer at its best learning rate, compared with nobody.

    Args:
        sweep: all its runs.
        better: whether a lower or a higher metric wins.
        target: the metric to be reached, if there is one.
    """
    ends = np.where(sweep.diverged, np.nan, sweep.metric[..., -1])
    means = ends.mean(axis=1)
    place = int(worth(means, better).argmax())
    several = len(sweep.seeds) > 1
    reached = None if target is None else _reached(sweep, place, better, target)
    return Standing(
        sweep=sweep,
        place=place,
        edge=len(sweep.rates) > 1 and place in (0, len(sweep.rates) - 1),
        metric=float(means[place]),
        spread=float(ends[place].std(ddof=1)) if several else float("nan"),
        steps_to_target=None if reached is None else reached[0],
        seconds_to_target=None if reached is None else reached[1],
        diverged=int(sweep.diverged.sum()),
    )


def _reached(
    sweep: Sweep, place: int, better: Better, target: float
) -> tuple[float, float] | None:
    """Steps and seconds until the first look at which the target is reached."""
    there = worth(sweep.metric[place], better) >= worth(target, better)
    if not there.any(axis=-1).all():
        return None
    looks = there.argmax(axis=-1)
    steps = np.asarray(sweep.steps)[looks].mean()
    seconds = np.asarray(sweep.seconds)[looks].mean() / sweep.runs
    return float(steps), float(seconds)


def _by_factors(first: Standing, other: Standing, better: Better) -> bool:
    """Whether to compare logarithms."""
    return better == "lower" and bool(min(*first.ends, *other.ends) > 0)


def _likely(first: Standing, other: Standing) -> float | None:
    """How likely their difference is by chance."""
    a, b = first.ends, other.ends
    if other.logarithms:
        a, b = np.log(a), np.log(b)
    return welch(a, b)


def _judged(row: Standing, p: float | None) -> Standing:
    if np.isnan(row.metric):
        return replace(row, verdict="diverged")
    clear = p is not None and p < LEVEL
    return replace(row, p=p, verdict="worse" if clear else "no clear difference")
