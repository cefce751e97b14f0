"""The stages of the suite, the same for every optimizer.

1. Short runs of one seed, six in a program. First six learning rates, each twice the
   last, at one weight decay. Then the neighbours of the best pair of both that were not
   tried: half and twice the rate, a third and three times the decay. This ends when no
   neighbour of the best pair is better by more than 0.003 nats, or after five programs.
   If the best rate is the lowest or highest tried then, the entry is void.
2. Full runs of two other seeds at the best weight decay: the best rate, and the two
   below it by factors of sqrt(2), because longer runs need lower rates. If the lowest
   or the highest of the three is the best, three more beyond it. Then at other weight
   decays: three times the decay at half the best rate, and a third of it at the same
   and at twice the rate.
3. Full runs of five new seeds at the best of these. Only they count. Arms that should
   be equal or close to another may run with more seeds.

A sixth run of stage 3 repeats its first seed: the difference is noise of the machine.
"""

from collections.abc import Collection, Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, isclose, sqrt
from typing import NamedTuple

from ._arms import ADAMW, Arm, ARMS
from ._members import Member, Rest
from ._size import Size

RATES = 6  # in the first program
PROGRAMS = 5  # of short runs, at most
FACTORS = 2.0, 3.0  # between two learning rates, and two values of weight decay
# Nats. One run of AdamW varies by as much after 2000 steps on a GPU. Searches that
# followed every gain ran along flat valleys: one chose a decay 80 times as small as the
# best one of its neighbours, for a gain of 0.003 on one seed.
MARGIN = 0.003
# Factors on the rate and the decay. Where their product stays about the same, so does
# the loss, and longer runs need a lower one.
VALLEY = (0.5, 3.0), (1.0, 1 / 3), (2.0, 1 / 3)
STAGE_1, STAGE_2 = (101,), (201, 202)
SEEDS = 1, 2, 3, 4, 5  # of all arms
# Of the arms that should be equal or close to another, in programs of six. By rounding
# alone, AdamW and Optax's differ by 0.49 sigma after 800 steps (measured with six
# seeds, at 3 layers of width 64), so the mean of 17 has a standard error of 0.12 sigma;
# the bar is at 0.3.
MORE_SEEDS = tuple(range(6, 18))
COMPARED = {x for arm in ARMS if arm.equal for x in (arm.name, arm.twin)}
COMPARED |= {arm.name for arm in ARMS if arm.close}

# For each stage, and the two additional lengths of AdamW.
TUNING, NARROWING, FINAL, MORE, SHORTER, LONGER = (
    "short",
    "full",
    "final",
    "more",
    "shorter",
    "longer",
)
Point = tuple[int, int]  # exponents of the factors: of the rate, and of the decay


class Request(NamedTuple):
    """Some runs of one stage, as many as one program has at most."""

    stage: str
    steps: int
    members: tuple[Member, ...]
    rest: Rest


class Tuned(NamedTuple):
    """The numbers that stage 3 uses."""

    rate: float
    decay: float


@dataclass(frozen=True)
class Entry:
    """What came of an arm's tuning.

    Attributes:
        tuned: the best numbers; `None` if there are none.
        void: why the entry does not count; empty if it does.
        programs: number of programs of short runs.
        edge: whether the best weight decay is the `lowest` or the `highest` one tried;
            empty if neither.
    """

    tuned: Tuned | None
    void: str = ""
    programs: int = 0
    edge: str = ""


Stages = Generator[Request, Sequence[float], Entry]


def stages(arm: Arm, size: Size, entries: Mapping[str, Entry]) -> Stages:
    """The runs of an arm: yields requests, and is sent their final losses.

    Args:
        arm: the optimizer.
        size: of the suite.
        entries: of the arms before it.
    """
    rest = rest_of(arm, entries)
    if arm.twin is None:
        entry = yield from _tuning(arm, size, rest)
    else:
        entry = Entry(entries[arm.twin].tuned)
    if entry.tuned is None:
        return entry
    members = tuple(Member(*entry.tuned, seed) for seed in (*SEEDS, SEEDS[0]))
    yield Request(FINAL, size.steps, members, rest)
    more = more_seeds(arm, size)
    for k in range(0, len(more), size.members):
        some = tuple(Member(*entry.tuned, seed) for seed in more[k : k + size.members])
        yield Request(MORE, size.steps, some, rest)
    if arm.name == ADAMW:
        for stage, steps in zip((SHORTER, LONGER), size.lengths, strict=True):
            yield Request(stage, steps, members[: len(SEEDS)], rest)
    return entry


def more_seeds(arm: Arm, size: Size) -> tuple[int, ...]:
    """Seeds of an arm's final runs besides those that all arms have.

    Args:
        arm: the optimizer.
        size: of the suite.
    """
    return MORE_SEEDS if size.more_seeds and arm.name in COMPARED else ()


def rest_of(arm: Arm, entries: Mapping[str, Entry]) -> Rest:
    """AdamW's numbers for the leaves that are not matrices.

    Args:
        arm: the optimizer.
        entries: of the arms before it.
    """
    if not arm.rest:
        return Rest(0.0, 0.0)
    tuned = entries[ADAMW].tuned
    assert tuned is not None
    return Rest(*tuned)


def missing(arm: Arm, entries: Mapping[str, Entry]) -> str:
    """Why an arm cannot run: an arm that it depends on has no numbers. Or empty.

    Args:
        arm: the optimizer.
        entries: of the arms before it.
    """
    needed = sorted(needed_by(arm))
    without = [x for x in needed if x not in entries or entries[x].tuned is None]
    return f"{without[0]} has no tuned numbers" if without else ""


def needed_by(arm: Arm) -> set[str]:
    """The names of the arms whose tuned numbers an arm uses.

    Args:
        arm: the optimizer.
    """
    return {name for name in (arm.twin, ADAMW if arm.rest else None) if name}


def work(arm: Arm, size: Size) -> int:
    """Steps of the arm's programs, if the grid need not be extended.

    Args:
        arm: the optimizer.
        size: of the suite.
    """
    programs = 2 if arm.decay else 1  # in both stages
    tuning = 0 if arm.twin else programs * (size.short + size.steps)
    lengths = sum(size.lengths) if arm.name == ADAMW else 0
    final = 1 + -(-len(more_seeds(arm, size)) // size.members)
    return tuning + final * size.steps + lengths


def _tuning(arm: Arm, size: Size, rest: Rest) -> Stages:
    """Stages 1 and 2."""
    entry, decays = yield from _short_runs(arm, size, rest)
    if entry.tuned is None:
        return entry
    rate, decay = entry.tuned
    means: dict[Tuned, float] = {}

    def best_with(
        points: Sequence[Tuned],
    ) -> Generator[Request, Sequence[float], Tuned]:
        pairs = [(at, seed) for at in points for seed in STAGE_2]
        some = tuple(Member(*at, seed) for at, seed in pairs)
        losses = yield Request(NARROWING, size.steps, some, rest)
        for (at, _), loss in zip(pairs, losses, strict=True):
            means[at] = means.get(at, 0.0) + loss / len(STAGE_2)
        return min(means, key=lambda at: means[at])

    lower, near, higher = (
        [Tuned(rate * sqrt(2) ** k, decay) for k in range(first, first + 3)]
        for first in (-5, -2, 1)
    )
    best = yield from best_with(near)
    if means[best] == inf:
        void = "all rates had a full run that diverged"
        return replace(entry, tuned=None, void=void)
    if best != near[1]:
        best = yield from best_with(higher if best == near[2] else lower)
    if decay:
        valley = [Tuned(best.rate * a, best.decay * b) for a, b in VALLEY]
        best = yield from best_with(valley)
    edge = side_of(best.decay, {*decays, best.decay}) if decay else ""
    return replace(entry, tuned=best, edge=edge)


def _short_runs(
    arm: Arm, size: Size, rest: Rest
) -> Generator[Request, Sequence[float], tuple[Entry, set[float]]]:
    """Stage 1. Returns its best numbers, and all decays that were tried."""
    numbers = lambda at: Tuned(
        arm.rate * size.warm * FACTORS[0] ** at[0], arm.decay * FACTORS[1] ** at[1]
    )
    ends: dict[Point, float] = {}
    new: list[Point] = [(k, 0) for k in range(-2, RATES - 2)]
    best, programs = new[0], 0
    while new and programs < PROGRAMS:
        for k in range(0, len(new), size.members):
            some = new[k : k + size.members]
            members = tuple(Member(*numbers(at), STAGE_1[0]) for at in some)
            losses = yield Request(TUNING, size.short, members, rest)
            ends |= dict(zip(some, losses, strict=True))
        least = min(ends, key=lambda at: ends[at])
        if not programs or ends[least] < ends[best] - MARGIN:
            best = least
        programs += 1
        if ends[best] == inf:
            return Entry(None, "all short runs diverged", programs), set()
        new = _untried(best, ends, arm.decay > 0)
    tuned, side = numbers(best), side_of(best[0], {x for x, _ in ends})
    if side:
        void = f"the best learning rate is the {side} one tried, {tuned.rate:.2g}"
        return Entry(None, void, programs), set()
    return Entry(tuned, "", programs), {numbers(at).decay for at in ends}


def side_of(best: int | float, tried: Collection[int | float]) -> str:
    """Whether the best value is the `lowest` or the `highest` one; empty if neither.

    Args:
        best: one of the values, but for rounding.
        tried: all of them.
    """
    sides = ((min(tried), "lowest"), (max(tried), "highest"))
    return next((side for x, side in sides if isclose(best, x, rel_tol=1e-6)), "")


def _untried(best: Point, tried: Mapping[Point, float], decays: bool) -> list[Point]:
    """The next points to try: none if the best one has no untried neighbour.

    A program has room for as many as the first one had. What is left of it after the
    neighbours goes to the points beyond them.
    """
    i, j = best
    far = range(-2, 3)
    points = [(x, y) for x in far for y in far if decays or not y]
    # First the neighbours, and of those the rates: without them the entry is void.
    far_off = lambda x, y: (max(x, y), x + y, x if max(x, y) > 1 else y)
    points.sort(key=lambda p: far_off(*map(abs, p)))
    ring = [p for p in points if max(map(abs, p)) == 1]
    if all((i + x, j + y) in tried for x, y in ring):
        return []
    new = [(i + x, j + y) for x, y in points if (i + x, j + y) not in tried]
    return new[:RATES]
