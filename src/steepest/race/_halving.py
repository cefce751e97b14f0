"""Which learning rates of an optimizer are hopeless, and stopped early.

Jamieson and Talwalkar, Non-stochastic best arm identification and hyperparameter
optimization, 2016, arXiv:1502.07943

Successive halving, made cautious: orders change during a run, most of all while a
schedule lowers the learning rate. So the neighbours of the best learning rate always go
on, and so does every one that is almost as good.
"""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from ._breadth import lagging
from ._outcome import Better, Sweep
from ._standings import worth

FRACTIONS = Fraction(1, 4), Fraction(1, 2)  # of the steps
MARGIN = 0.2  # of the way from the initial metric to the best: such rates go on


def halving_steps(evaluation_steps: Sequence[int]) -> frozenset[int]:
    """The steps after which learning rates are stopped.

    Args:
        evaluation_steps: when the runs are evaluated; the last is the end.
    """
    end = evaluation_steps[-1]
    steps = {next(s for s in evaluation_steps if s >= f * end) for f in FRACTIONS}
    return frozenset(steps - {0, end})


def survivors(sweep: Sweep, better: Better) -> tuple[int, ...]:
    """Indices of the learning rates that go on after the latest evaluation.

    These are the better half, the neighbours of the best, and those that lag behind it
    by at most a fifth of the way from the initial metric. A learning rate at which a
    run diverged cannot become the best, and is stopped. If runs diverged at all of
    them, nothing changes.

    Args:
        sweep: all runs of an optimizer, so far.
        better: whether a lower or a higher metric wins.
    """
    means = sweep.ends.mean(axis=1)
    good = [k for k in sweep.running if np.isfinite(means[k])]
    if not good:
        return sweep.running
    order = sorted(good, key=lambda k: float(worth(means[k], better)), reverse=True)
    best = good.index(order[0])
    kept = {*order[: -(-len(sweep.running) // 2)], *good[max(0, best - 1) : best + 2]}
    begin = float(sweep.metric[..., 0].mean())
    lags = lagging(means, float(means[order[0]]), begin, better)
    if lags is None:  # no progress yet, so there is nothing to compare
        return tuple(good)
    return tuple(k for k in good if k in kept or lags[k] <= MARGIN)
