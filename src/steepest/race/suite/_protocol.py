"""The stages of the suite, the same for every optimizer.

1. Short runs of one seed: six learning rates, each twice the last, around the published
   one, times the values of weight decay. If the best rate is the lowest or the highest,
   two more beyond it, up to three times. If it still is, the entry is void.
2. Full runs of two other seeds at the best weight decay: the best rate, and the rates
   below and above it by a factor of sqrt(2).
3. Full runs of five new seeds at the best of these. Only they count.

A sixth run of stage 3 repeats its first seed: the difference is noise of the machine.
"""

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from math import inf, sqrt
from typing import NamedTuple

from ._arms import ADAMW, Arm
from ._members import Member, Rest
from ._size import Size

RATES = 6  # in the first grid
EXTENSIONS = 3  # of the grid, at most
STAGE_1, STAGE_2 = (101,), (201, 202)
SEEDS = 1, 2, 3, 4, 5

# For each stage, and the two additional lengths of AdamW.
TUNING, NARROWING, FINAL, SHORTER, LONGER = (
    "short",
    "full",
    "final",
    "shorter",
    "longer",
)


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
        extensions: how often the grid was extended.
        decay_at_edge: whether the best weight decay is the smallest or the largest.
    """

    tuned: Tuned | None
    void: str = ""
    extensions: int = 0
    decay_at_edge: bool = False


Stages = Generator[Request, Sequence[float], Entry]


def stages(arm: Arm, size: Size, entries: Mapping[str, Entry]) -> Stages:
    """The runs of an arm: yields requests, and is sent their final losses.

    Args:
        arm: the optimizer.
        size: of the suite.
        entries: of the arms before it.
    """
    rest = Rest(0.0, 0.0)
    if arm.rest:
        first = entries[ADAMW].tuned
        assert first is not None
        rest = Rest(*first)
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
    tuning = 0 if arm.twin else len(arm.decays) * size.short + size.steps
    lengths = sum(size.lengths) if arm.name == ADAMW else 0
    return tuning + size.steps + lengths


def _tuning(arm: Arm, size: Size, rest: Rest) -> Stages:
    """Stages 1 and 2."""
    centre = arm.rate * size.warm
    rates = [centre * 2.0**k for k in range(-2, RATES - 2)]
    ends: dict[tuple[float, float], float] = {}
    new, extensions = rates, 0
    while True:
        for some in _grid(new, arm.decays, size.members):
            members = tuple(Member(rate, decay, STAGE_1[0]) for rate, decay in some)
            losses = yield Request(TUNING, size.short, members, rest)
            ends |= dict(zip(some, losses, strict=True))
        rate, decay = min(ends, key=lambda pair: ends[pair])
        if ends[rate, decay] == inf:
            return Entry(None, "all short runs diverged", extensions)
        if rates[0] < rate < rates[-1]:
            break
        if extensions == EXTENSIONS:
            side = "lowest" if rate == rates[0] else "highest"
            void = f"the best learning rate is the {side} one tried, {rate:.2g}"
            return Entry(None, void, extensions)
        extensions += 1
        lower = rate == rates[0]
        new = [rate / 4, rate / 2] if lower else [2 * rate, 4 * rate]
        rates = sorted({*rates, *new})
    near = [rate / sqrt(2), rate, rate * sqrt(2)]
    pairs = [(x, seed) for x in near for seed in STAGE_2]
    members = tuple(Member(x, decay, seed) for x, seed in pairs)
    losses = yield Request(NARROWING, size.steps, members, rest)
    many = len(STAGE_2)
    means = [sum(losses[many * k : many * (k + 1)]) / many for k in range(len(near))]
    best = min(range(len(near)), key=lambda k: means[k])
    if means[best] == inf:
        return Entry(None, "all rates had a full run that diverged", extensions)
    edge = len(arm.decays) > 1 and decay in (min(arm.decays), max(arm.decays))
    return Entry(Tuned(near[best], decay), "", extensions, edge)


def _grid(
    rates: Sequence[float], decays: Sequence[float], most: int
) -> list[list[tuple[float, float]]]:
    """All pairs, in lists that are at most as long as a program."""
    pairs = [(rate, decay) for decay in decays for rate in rates]
    return [pairs[k : k + most] for k in range(0, len(pairs), most)]
