"""Which optimizer to use: the rule.

Quality comes first. Equally good optimizers are told apart by their cost, in the order
of `CRITERIA`; each criterion drops those that are clearly more expensive.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import hypot, inf, isfinite, isnan

import numpy as np

from ._breadth import lagging, TOLERANCE
from ._outcome import Outcome
from ._standings import ROUNDING, Standing

MARGIN = 0.1  # a smaller difference in cost is not a clear one


@dataclass(frozen=True)
class Criterion:
    """A cost of an optimizer; lower is better.

    Attributes:
        name: a key for its description.
        cost: returns the cost; infinite if it never ends.
        spread: returns how much the cost varies.
    """

    name: str
    cost: Callable[[Standing], float]
    spread: Callable[[Standing], float] = lambda row: 0.0

    def clearly(self, row: Standing, least: Standing) -> bool:
        """Whether an optimizer is clearly more expensive than another.

        Args:
            row: an optimizer.
            least: a cheaper one.
        """
        a, b = self.cost(row), self.cost(least)
        if not (isfinite(a) and isfinite(b)):
            return isfinite(b)
        noise = [0.0 if isnan(s) else s for s in map(self.spread, (row, least))]
        return a - b > max(MARGIN * b, hypot(*noise))


def _seconds_to_target(row: Standing) -> float:
    return inf if row.seconds_to_target is None else row.seconds_to_target


def _their_spread(row: Standing) -> float:
    known = row.sweep.timed and row.seconds_spread is not None
    return row.seconds_spread or 0.0 if known else inf


CRITERIA = (
    Criterion("time to target", _seconds_to_target, _their_spread),
    Criterion(
        "time per step",
        lambda row: row.sweep.step_seconds,
        lambda row: row.sweep.step_spread if row.sweep.timed else inf,
    ),
    Criterion("state", lambda row: row.sweep.bytes_per_param),
    Criterion(
        "rates",
        lambda row: 1 / row.breadth.factor if row.breadth else 1.0,
        # How far the good rates go is unknown: that must not decide.
        lambda row: inf if row.breadth and row.breadth.cut else 0.0,
    ),
)


def as_good(outcome: Outcome, rows: Sequence[Standing]) -> list[Standing]:
    """The optimizers that are as good as the best one, which comes first.

    There is no clear difference from the best, and the mean lags behind by at most 2%
    of the way from the initial metric to the best one. The second condition is needed
    because a test of few seeds misses large differences.

    Args:
        outcome: of a race.
        rows: its standings; the first one has not diverged.
    """
    best = rows[0]
    begin = float(best.sweep.metric[..., 0].mean())

    def close(row: Standing) -> bool:
        metric = np.array([row.metric])
        lags = lagging(metric, best.metric, begin, outcome.better)
        return row.p is not None if lags is None else bool(lags[0] <= TOLERANCE)

    near = [row for row in rows[1:] if row.verdict == "no clear difference"]
    return [best, *filter(close, near)]


def none_improved(outcome: Outcome, rows: Sequence[Standing]) -> bool:
    """Whether no optimizer has a better metric than before the first step.

    Args:
        outcome: of a race.
        rows: its standings.
    """
    alive = (row for row in rows if row.verdict != "diverged")
    return not any(_improved(outcome, row) for row in alive)


def _improved(outcome: Outcome, row: Standing) -> bool:
    """Whether the metric of an optimizer that has not diverged became better.

    Either all seeds gained, by more than rounding errors, or the mean gain is above
    twice its standard error.
    """
    begin = row.sweep.metric[row.place, :, 0]
    if not np.isfinite(begin).all():
        return True
    gains = row.ends - begin if outcome.better == "higher" else begin - row.ends
    gains = gains - ROUNDING * abs(begin)
    error = gains.std(ddof=1) / len(gains) ** 0.5 if len(gains) > 1 else 0.0
    return bool((gains > 0).all() or gains.mean() > 2 * error)


def cheapest(rows: Sequence[Standing]) -> Standing:
    """The cheapest of equally good optimizers.

    Args:
        rows: the optimizers, best mean first. If none is clearly cheaper, the first of
            those left is chosen.
    """
    left = list(rows)
    for criterion in CRITERIA:
        left = [row for row in left if not any(criterion.clearly(row, x) for x in left)]
    return left[0]


def separating(a: Standing, b: Standing) -> tuple[Criterion, bool] | None:
    """The first criterion that tells two optimizers apart; `None` if none does.

    Args:
        a: an optimizer.
        b: another one.

    Returns:
        The criterion, and whether `a` is the more expensive one.
    """
    for criterion in CRITERIA:
        dearer = criterion.clearly(a, b)
        if dearer or criterion.clearly(b, a):
            return criterion, dearer
    return None


def in_order(outcome: Outcome, rows: Sequence[Standing]) -> list[Standing]:
    """The first and the second choice, as far as there are any.

    The second is the cheapest of the others that are as good; if there is none, the one
    with the next best metric. There is no choice if none has improved the metric.

    Args:
        outcome: of a race.
        rows: its standings.
    """
    if none_improved(outcome, rows):
        return []
    good = [row for row in rows if row.verdict != "diverged"]
    equals = as_good(outcome, good)
    first = cheapest(equals)
    rest = [row for row in equals if row is not first]
    rest = rest or [row for row in good if row is not first][:1]
    return [first, cheapest(rest)] if rest else [first]
