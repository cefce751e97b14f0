"""The ranking of the optimizers, with tests of significance."""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from ._breadth import Breadth, breadth
from ._outcome import Better, Outcome, Rate, Sweep
from ._significance import compare, holm, Test

Verdict = Literal["best", "no clear difference", "worse", "diverged"]
LEVEL = 0.05  # significance level
ROUNDING = 1e-6  # a smaller relative difference of two means is none


@dataclass(frozen=True)
class Standing:
    """An optimizer at its best learning rate: a row of the table.

    Attributes:
        sweep: all its runs.
        place: index of its best learning rate among those tried.
        edge: whether that is the lowest or the highest one tried, and better than the
            one beside it, so a better one may lie outside the range.
        metric: the final metric, mean over the seeds.
        spread: its standard deviation over the seeds.
        steps_to_target: mean over the seeds; `None` if one of them never reaches it.
        seconds_to_target: the same in seconds of one run: the steps times the median
            time of a step.
        seconds_spread: how much it varies: over the seeds, and with the time of a step;
            NaN if neither is known.
        breadth: the range of good learning rates around the best one; `None` if only
            one was tried.
        diverged: number of diverged runs, at all learning rates.
        stopped: number of learning rates that halving has stopped.
        p: p-value of the difference from the best; `None` for the best itself, and with
            fewer than two seeds.
        verdict: the comparison with the best, in words.
        logarithms: whether the test compared logarithms of the metrics.
        paired: whether the test was paired by seed.
    """

    sweep: Sweep
    place: int
    edge: bool
    metric: float
    spread: float
    steps_to_target: float | None
    seconds_to_target: float | None
    seconds_spread: float | None
    breadth: Breadth | None
    diverged: int
    stopped: int = 0
    p: float | None = None
    verdict: Verdict = "best"
    logarithms: bool = False
    paired: bool = False

    @property
    def name(self) -> str:
        """The optimizer's name."""
        return self.sweep.name

    @property
    def rate(self) -> Rate:
        """Its best learning rate."""
        return self.sweep.rates[self.place]

    @property
    def beside(self) -> list[Rate]:
        """The rates next to the best that halving has stopped, but did not diverge."""
        sweep = self.sweep
        near = [
            k for k in (self.place - 1, self.place + 1) if 0 <= k < len(sweep.rates)
        ]
        return [sweep.rates[k] for k in near if sweep.unknown[k]]

    @property
    def ends(self) -> np.ndarray:
        """(seeds,), the final metric."""
        return self.sweep.ends[self.place]


def standings(outcome: Outcome) -> list[Standing]:
    """A row for each optimizer, best first.

    Learning rates are ranked by the final metric, mean over the seeds; those at which a
    run diverged come last, and those that halving has stopped do not count. Of equally
    good ones, as with an accuracy of 1, the one in the middle is taken. A t-test
    over the seeds, with Holm's correction for the number of comparisons, tests the
    difference from the best optimizer: paired by seed with five seeds or more, else
    Welch's. If a lower metric is better and all values are positive, it compares
    logarithms: 1e-9 is much better than 1e-3, though both are close to 0.

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
    tests = [_tested(first, row) for row in rest]
    trio = zip(rest, tests, holm([test.p for test in tests]), strict=True)
    return [first, *(_judged(row, test, p) for row, test, p in trio)]


def worth(metric: float | np.ndarray, better: Better) -> np.ndarray:
    """The metric, signed so that higher is better; NaN becomes -infinity.

    Args:
        metric: one value, or several.
        better: whether a lower or a higher metric wins.
    """
    signed = metric if better == "higher" else -metric
    return np.where(np.isnan(metric), -np.inf, signed)


def standing(sweep: Sweep, better: Better, target: float | None = None) -> Standing:
    """An optimizer at its best learning rate, not yet compared with others.

    Args:
        sweep: all its runs.
        better: whether a lower or a higher metric wins.
        target: the value of the metric to reach, or `None`.
    """
    ends = sweep.ends
    means = ends.mean(axis=1)
    tied = _tied(sweep, means, better)
    place = tied[(len(tied) - 1) // 2]
    reached = None if target is None else _reached(sweep, place, better, target)
    step = sweep.step_seconds
    return Standing(
        sweep=sweep,
        place=place,
        edge=1 == len(tied) < len(sweep.rates) and place in (0, len(sweep.rates) - 1),
        metric=float(means[place]),
        spread=spread_of(ends[place]),
        steps_to_target=None if reached is None else float(reached.mean()),
        seconds_to_target=None if reached is None else float(reached.mean() * step),
        seconds_spread=None if reached is None else _spread_of_time(sweep, reached),
        breadth=breadth(sweep, place, better),
        diverged=int(sweep.diverged.sum()),
        stopped=len(sweep.rates) - len(sweep.running),
    )


def _tied(sweep: Sweep, means: np.ndarray, better: Better) -> list[int]:
    """Indices of the learning rates with the best mean, but for rounding."""
    worths = worth(means, better)
    most = worths[list(sweep.running)].max()
    equal = (worths == most) | np.isclose(worths, most, ROUNDING, 0)
    return [k for k in sweep.running if equal[k]]


def _reached(
    sweep: Sweep, place: int, better: Better, target: float
) -> np.ndarray | None:
    """(seeds,), the step of the first evaluation that reaches the target."""
    there = worth(sweep.metric[place], better) >= worth(target, better)
    if not there.any(axis=-1).all():
        return None
    return np.asarray(sweep.steps)[there.argmax(axis=-1)]


def _spread_of_time(sweep: Sweep, steps: np.ndarray) -> float:
    """How much the time of these steps varies, one number of steps for each seed."""
    parts = spread_of(steps) * sweep.step_seconds, steps.mean() * sweep.step_spread
    known = [x for x in parts if not np.isnan(x)]
    return float(np.hypot.reduce(known)) if known else float("nan")


def spread_of(values: np.ndarray) -> float:
    """The standard deviation; NaN for a single value.

    Args:
        values: one for each seed.
    """
    return float(values.std(ddof=1)) if len(values) > 1 else float("nan")


def _by_factors(first: Standing, other: Standing, better: Better) -> bool:
    """Whether to compare logarithms."""
    return better == "lower" and bool(min(*first.ends, *other.ends) > 0)


def _tested(first: Standing, other: Standing) -> Test:
    """The test of their difference."""
    a, b = first.ends, other.ends
    if other.logarithms:
        a, b = np.log(a), np.log(b)
    return compare(a, b, shared=first.sweep.seeds == other.sweep.seeds)


def _judged(row: Standing, test: Test, p: float | None) -> Standing:
    """The row with its test and the corrected p-value."""
    if np.isnan(row.metric):
        return replace(row, verdict="diverged")
    clear = p is not None and p < LEVEL
    verdict = "worse" if clear else "no clear difference"
    return replace(row, p=p, paired=test.paired, verdict=verdict)
