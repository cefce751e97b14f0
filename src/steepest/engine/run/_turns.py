"""The steps in which matrices change what is too expensive for every step."""

from collections.abc import Sequence
from functools import lru_cache
from itertools import chain
from math import inf
from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

Run = tuple[int, int, int]  # a cell, its first member, and the one after the last


class Turns(NamedTuple):
    """The steps in which the matrices of one stack have their turns."""

    first: int  # the step of the first turn
    count: int  # the number of turns, in successive steps
    period: int  # the number of steps until all have had a turn

    @property
    def steps(self) -> np.ndarray:
        """The steps of the turns, in a period."""
        return np.arange(self.first, self.first + self.count) % self.period

    def width(self, total: int) -> int:
        """The number of matrices in each turn.

        Args:
            total: the number of matrices.
        """
        return -(-total // self.count)

    def windows(self, numbers: Sequence[Sequence[int]]) -> list[list[Run]]:
        """For each turn, the members of the cells in it.

        All turns have the same number of matrices. If they cannot, the last ones have a
        matrix in common.

        Args:
            numbers: for each cell, the numbers of its matrices among all.
        """
        cells = enumerate(numbers)
        members = {n: (j, i) for j, row in cells for i, n in enumerate(row)}
        spans = self.spans(len(members))
        return [_runs(sorted(members[n] for n in range(*span))) for span in spans]

    def spans(self, total: int) -> list[tuple[int, int]]:
        """For each turn, the first matrix in it, and the one after the last.

        Args:
            total: the number of matrices.
        """
        width = self.width(total)
        starts = (min(c * width, total - width) for c in range(self.count))
        return [(start, start + width) for start in starts]


def _runs(members: Sequence[tuple[int, int]]) -> list[Run]:
    """Members of cells that follow each other, together.

    Args:
        members: (cell, its member), increasing.
    """
    runs: list[Run] = []
    for j, i in members:
        if runs and runs[-1][0] == j and runs[-1][2] == i:
            runs[-1] = j, runs[-1][1], i + 1
        else:
            runs.append((j, i, i + 1))
    return runs


class Places(NamedTuple):
    """Some of the matrices that have turns together: those of one stack, or one leaf.

    It is hashable, so that what is compiled for it can be cached.
    """

    turns: Turns | None  # `None` if all change in the same step
    numbers: tuple[int, ...]  # of these matrices among all, increasing
    total: int  # the number of all

    def windows(self, order: Sequence[Sequence[int]]) -> tuple[np.ndarray, np.ndarray]:
        """Which members of a stack are in each turn, for each device.

        (turn, device) -> the first member of a window of w members, which is the same
        for all; and for each of these, whether it is in the turn.

        Args:
            order: for each device, the indices of its matrices in `numbers`,
                increasing; -1 for a copy, which has no turn.
        """
        assert self.turns is not None
        numbers = np.array([*self.numbers, -1])[np.asarray(order)]  # -1 stays -1
        spans = self.turns.spans(self.total)
        inside = np.array([(a <= numbers) & (numbers < b) for a, b in spans])
        size = inside.shape[-1]
        first, last = inside.argmax(-1), size - 1 - inside[..., ::-1].argmax(-1)
        width = max(1, np.where(inside.any(-1), last - first + 1, 0).max())
        starts = np.minimum(first, size - width)
        return starts, np.take_along_axis(
            inside, starts[..., None] + np.arange(width), -1
        )


class Work(NamedTuple):
    """The work for one stack."""

    members: int  # the number of matrices
    cost: float  # of all of them, in any unit

    def counts(self, k: int) -> list[int]:
        """The numbers of turns in `k` steps that differ in the work of a turn."""
        counts = range(1, min(self.members, k) + 1)
        by_width = {-(-self.members // c): c for c in reversed(counts)}
        return sorted(by_width.values())

    def of_a_turn(self, count: int) -> float:
        """The work in each of some turns."""
        return self.cost / self.members * -(-self.members // count)


_EVEN = 1.05  # a fuller step is as good, if it saves turns
_FINER = 1.02  # the limits for the fullest step that are tried differ by this factor


def divide(works: Sequence[Work], k: int | None) -> Sequence[Turns | None]:
    """Divide `k` steps among the stacks, so that each step has about as much work.

    A stack has as few turns as the fullest step allows, in successive steps. To work on
    a part of each stack in every step takes longer, since a factorization is a long
    chain of small operations: SOAP on a GPT of width 96 took 111 ms a step instead of
    79, on two CPU cores (JAX 0.10.2).

    Args:
        works: the work for each stack.
        k: the number of steps; `None` if there are no turns.
    """
    if k is None:
        return [None] * len(works)
    return list(_divided(tuple(works), k))


@lru_cache(maxsize=128)  # what several steps are traced for; a plan takes milliseconds
def _divided(works: tuple[Work, ...], k: int) -> tuple[Turns, ...]:
    smallest = [work.of_a_turn(work.counts(k)[-1]) for work in works]
    start = max(sum(work.cost for work in works) / k, *smallest, 0.0)
    plans: list[_Plan] = []
    least = inf
    for wanted in sorted({1, *chain.from_iterable(work.counts(k) for work in works)}):
        limit = start
        while limit < _EVEN * least:
            plans.append(_plan(works, k, limit, wanted))
            least = min(least, plans[-1].peak)
            limit *= _FINER
    even = [plan.turns for plan in plans if plan.peak <= _EVEN * least]
    return min(even, key=lambda turns: sum(x.count for x in turns))


class _Plan(NamedTuple):
    peak: float  # the work in the fullest step
    turns: tuple[Turns, ...]


def _plan(works: Sequence[Work], k: int, limit: float, wanted: int) -> _Plan:
    """The turns; if possible, no step has more work than `limit`.

    Args:
        works: the work for each stack.
        k: the number of steps.
        limit: the most work in a step.
        wanted: the number of turns that each stack should have, if the limit allows it.
    """
    load, turns = np.zeros(k), {}
    # Stacks with much work choose their steps first.
    for j in sorted(range(len(works)), key=lambda j: -works[j].cost):
        work, least = works[j], inf
        # First as many turns as wanted, then more, then less.
        for count in sorted(
            work.counts(k), key=lambda c: (c < wanted, abs(c - wanted))
        ):
            fullest, choice = _best(load, count)
            fullest += work.of_a_turn(count)
            if fullest < least:
                least, turns[j] = fullest, choice
            if fullest <= limit:
                break
        load[turns[j].steps] += work.of_a_turn(turns[j].count)
    return _Plan(load.max(), tuple(turns[j] for j in range(len(works))))


def _best(load: np.ndarray, count: int) -> tuple[float, Turns]:
    """The turns whose fullest step has the least work so far, and how much that is.

    Args:
        load: the work in each step so far.
        count: the number of turns.
    """
    fullest = sliding_window_view(np.append(load, load[: count - 1]), count).max(axis=1)
    first = int(fullest.argmin())
    return fullest[first], Turns(first, count, len(load))
