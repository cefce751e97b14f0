"""Which matrices change their memory in which step, if they take turns."""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np


class Turns(NamedTuple):
    """The steps in which the matrices of one stack have their turns."""

    first: int  # the step of the first turn
    count: int  # the number of turns, in successive steps
    period: int  # the number of steps until all have had a turn

    def width(self, members: int) -> int:
        """The number of matrices in each turn.

        Args:
            members: the number of matrices in the stack.
        """
        return -(-members // self.count)

    def windows(self, sizes: Sequence[int]) -> list[list[tuple[int, int, int]]]:
        """For each turn: (cell, its first and last member) of each cell in it.

        All turns have the same number of matrices. If they cannot, the last ones have a
        matrix in common.

        Args:
            sizes: the number of matrices in each cell.
        """
        total = sum(sizes)
        width = self.width(total)
        ends = np.cumsum([0, *sizes]).tolist()
        return [
            [
                (j, max(a, start) - a, min(b, start + width) - a)
                for j, (a, b) in enumerate(pairwise(ends))
                if max(a, start) < min(b, start + width)
            ]
            for start in (min(c * width, total - width) for c in range(self.count))
        ]


class Work(NamedTuple):
    """The work for one stack."""

    members: int  # the number of matrices
    cost: float  # of all of them, in any unit


def in_proportion(works: Sequence[Work], k: int | None) -> list[Turns | None]:
    """Divide `k` steps among the stacks, in proportion to their work.

    So a step works on one stack, if there are fewer stacks than steps. To work on a
    part of each stack in every step takes longer, since a factorization is a long chain
    of small operations: SOAP on a GPT of width 96 took 111 ms a step instead of 79, on
    two CPU cores (JAX 0.10.2).

    Args:
        works: the work for each stack.
        k: the number of steps; `None` if there are no turns.
    """
    if k is None:
        return [None] * len(works)
    total = sum(work.cost for work in works) or 1.0
    spare = max(k - len(works), 0)
    turns, first = [], 0
    for work in works:
        # At least one turn for each stack, and the others by their work.
        count = min(work.members, k, 1 + int(spare * work.cost / total))
        turns.append(Turns(first % k, count, k))
        first += count
    return turns
