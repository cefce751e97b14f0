"""The stages of the suite, the same for every optimizer.

1. Short runs of one seed, six in a program. First six learning rates, each twice the
   last, around the published one, at one weight decay. Then the neighbours of the best
   pair of both that were not tried: half and twice the rate, a third and three times
   the decay. This ends when all neighbours of the best pair are worse, or after five
   programs. If the best rate is the lowest or highest tried then, the entry is void.
2. Full runs of two other seeds at the best weight decay: the best rate, and the rates
   below and above it by a factor of sqrt(2).
3. Full runs of five new seeds at the best of these. Only they count. When all arms are
   finished, twins and the arms that have one may run with five more seeds.

A sixth run of stage 3 repeats its first seed: the difference is noise of the machine.
"""

from collections.abc import Collection, Generator, Mapping, Sequence
from dataclasses import dataclass
from math import inf, sqrt
from typing import NamedTuple

from ._arms import ADAMW, Arm, ARMS
from ._members import Member, Rest
from ._size import Size

RATES = 6  # in the first program
PROGRAMS = 5  # of short runs, at most
FACTORS = 2.0, 3.0  # between two learning rates, and two values of weight decay
STAGE_1, STAGE_2 = (101,), (201, 202)
SEEDS = 1, 2, 3, 4, 5  # of all arms
MORE_SEEDS = 6, 7, 8, 9, 10  # of twins, and of the arms that have one
PAIRED = {x for arm in ARMS if arm.equal for x in (arm.name, arm.twin)}

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
        edge: an arrow, if the best weight decay is the smallest or the largest tried.
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
    rest = _rest(arm, entries)
    if arm.twin is None:
        entry = yield from _tuning(arm, size, rest)
    else:
        entry = Entry(entries[arm.twin].tuned)
    if entry.tuned is None:
        return entry
    members = tuple(Member(*entry.tuned, seed) for seed in (*SEEDS, SEEDS[0]))
    yield Request(FINAL, size.steps, members, rest)
    if arm.name == ADAMW:
        for stage, steps in zip((SHORTER, LONGER), size.lengths, strict=True):
            yield Request(stage, steps, members[: len(SEEDS)], rest)
    return entry


def more_seeds(arm: Arm, size: Size, entries: Mapping[str, Entry]) -> Request | None:
    """Runs of a finished arm with other seeds, if it is one of a pair of twins.

    They come last: all arms should have five seeds before some have ten.

    Args:
        arm: the optimizer.
        size: of the suite.
        entries: of all arms that are finished.
    """
    entry = entries.get(arm.name)
    if not size.more_seeds or arm.name not in PAIRED or entry is None:
        return None
    if entry.tuned is None:
        return None
    members = tuple(Member(*entry.tuned, seed) for seed in MORE_SEEDS)
    return Request(MORE, size.steps, members, _rest(arm, entries))


def _rest(arm: Arm, entries: Mapping[str, Entry]) -> Rest:
    """AdamW's numbers for the leaves that are not matrices."""
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
    needed = [name for name in (arm.twin, ADAMW if arm.rest else None) if name]
    without = [x for x in needed if x not in entries or entries[x].tuned is None]
    return f"{without[0]} has no tuned numbers" if without else ""


def work(arm: Arm, size: Size) -> int:
    """Steps of the arm's programs, if the grid need not be extended.

    Args:
        arm: the optimizer.
        size: of the suite.
    """
    programs = 2 if arm.decay else 1
    tuning = 0 if arm.twin else programs * size.short + size.steps
    lengths = sum(size.lengths) if arm.name == ADAMW else 0
    return tuning + size.steps + lengths


def _tuning(arm: Arm, size: Size, rest: Rest) -> Stages:
    """Stages 1 and 2."""
    numbers = lambda at: (
        arm.rate * size.warm * FACTORS[0] ** at[0],
        arm.decay * FACTORS[1] ** at[1],
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
        programs += 1
        best = min(ends, key=lambda at: ends[at])
        if ends[best] == inf:
            return Entry(None, "all short runs diverged", programs)
        new = _untried(best, ends, arm.decay > 0)
    (rate, decay), (i, j) = numbers(best), best
    side = _side(i, {x for x, _ in ends})
    if side:
        void = f"the best learning rate is the {side} one tried, {rate:.2g}"
        return Entry(None, void, programs)
    near = [rate / sqrt(2), rate, rate * sqrt(2)]
    pairs = [(x, seed) for x in near for seed in STAGE_2]
    members = tuple(Member(x, decay, seed) for x, seed in pairs)
    losses = yield Request(NARROWING, size.steps, members, rest)
    many = len(STAGE_2)
    means = [sum(losses[many * k : many * (k + 1)]) / many for k in range(len(near))]
    k = min(range(len(near)), key=lambda k: means[k])
    if means[k] == inf:
        return Entry(None, "all rates had a full run that diverged", programs)
    arrows = {"lowest": "↓", "highest": "↑", "": ""}
    edge = arrows[_side(j, {y for _, y in ends})] if arm.decay else ""
    return Entry(Tuned(near[k], decay), "", programs, edge)


def _side(best: int, tried: Collection[int]) -> str:
    """Whether the best value is the lowest or the highest one; empty if neither."""
    return {min(tried): "lowest", max(tried): "highest"}.get(best, "")


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
