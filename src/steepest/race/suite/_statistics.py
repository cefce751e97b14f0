"""What the runs of a suite show: paired differences, and steps that they save.

Student, The probable error of a mean, 1908
Holm, A simple sequentially rejective multiple test procedure, 1979
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf, isfinite, sqrt
from statistics import median

import numpy as np

from .._significance import compare, holm
from ._arms import ADAMW, Arm, ARMS, MUON
from ._protocol import (
    Entry,
    FINAL,
    LONGER,
    MORE,
    NARROWING,
    SEEDS,
    SHORTER,
    side_of,
)
from ._record import ArmRecord, Record

_NOTES = {arm.name: arm for arm in ARMS}


@dataclass(frozen=True)
class Paired:
    """The difference between two arms, run by run with the same seed.

    Attributes:
        mean: of the differences; below zero if the first arm is better.
        error: standard error of the mean.
        p: two-sided p-value of the paired t-test; `None` if it cannot be computed.
        corrected: the same, corrected for the number of planned comparisons; `None`
            if it is not among them.
    """

    mean: float
    error: float
    p: float | None
    corrected: float | None = None

    def __str__(self) -> str:
        """The mean and its standard error."""
        return f"{self.mean:+.4f} ± {self.error:.4f}"

    @property
    def t(self) -> float:
        """The mean in standard errors."""
        if self.error:
            return self.mean / self.error
        return 0.0 if not self.mean else float(np.copysign(inf, self.mean))


@dataclass(frozen=True)
class Line:
    """What is known of one arm.

    Attributes:
        arm: its row in the table of arms.
        entry: what came of its tuning.
        side: whether the learning rate is the `lowest` or the `highest` of stage 2;
            empty if neither.
        losses: of the final runs, one per seed, in nats per byte. Some arms may have
            more seeds than others.
        floor: difference between two runs of the same seed.
        adamw: the difference from AdamW; `None` for AdamW itself.
        muon: the difference from Muon; `None` for Muon itself.
        steps: how many times as many steps AdamW needs for the same loss.
        diverged: number of runs that diverged, in all stages.
        runs: number of runs in all stages.
        step_seconds: median time of a step of one run.
        slowest: the slowest of the measured times.
        bytes_per_param: size of the optimizer's state.
        seconds: time of all its programs, without compiling.
        compiling: time to compile, in seconds.
    """

    arm: Arm
    entry: Entry
    side: str
    losses: tuple[float, ...]
    floor: float
    adamw: Paired | None
    muon: Paired | None
    steps: float | None
    diverged: int
    runs: int
    step_seconds: float
    slowest: float
    bytes_per_param: float
    seconds: float
    compiling: float

    @property
    def name(self) -> str:
        """Name of the arm."""
        return self.arm.name

    @property
    def mean(self) -> float:
        """Mean loss of the seeds that all arms have; infinite if a run diverged."""
        return sum(self.losses[: len(SEEDS)]) / len(SEEDS)

    @property
    def sigma(self) -> float:
        """Standard deviation of one run; infinite if a run diverged."""
        fine = all(map(isfinite, self.losses))
        return float(np.std(self.losses, ddof=1)) if fine else inf


@dataclass(frozen=True)
class Table:
    """All that a record shows.

    Attributes:
        lines: of the arms that count, best first.
        slope: by how much AdamW's final loss falls per step of its length; `None` if
            it was not measured.
        void: the arms whose tuning failed, with the reason.
        skipped: the arms that did not run or did not finish, with the reason.
    """

    lines: tuple[Line, ...]
    slope: float | None
    void: tuple[tuple[str, str], ...]
    skipped: tuple[tuple[str, str], ...]

    def line(self, name: str) -> Line | None:
        """The line of an arm; `None` if it does not count.

        Args:
            name: of the arm.
        """
        return next((line for line in self.lines if line.name == name), None)


def paired(a: Sequence[float], b: Sequence[float]) -> Paired | None:
    """The mean of `a - b`, its standard error and its test; `None` after a divergence.

    Args:
        a: final losses of an arm, one per seed.
        b: those of another arm. If one has more seeds, they are left out.

    >>> test = paired([1.0, 2.0, 3.0, 4.0, 5.0], [1.5, 2.5, 3.6, 4.5, 5.4])
    >>> round(test.mean, 3), round(test.error, 4), round(test.t, 2)
    (-0.5, 0.0316, -15.81)
    """
    many = min(len(a), len(b))
    x, y = np.asarray(a[:many], np.float64), np.asarray(b[:many], np.float64)
    if many < 2 or not np.isfinite([*x, *y]).all():
        return None
    error = float(np.std(x - y, ddof=1)) / sqrt(len(x))
    return Paired(float(np.mean(x - y)), error, compare(x, y).p)


def slope_of(record: Record) -> float | None:
    """By how much AdamW's final loss falls per step, around the full length.

    The slope of the straight line through the mean losses of three lengths.

    Args:
        record: of a suite.
    """
    adamw = record.arms.get(ADAMW, ArmRecord())
    found = [adamw.stage(name) for name in (SHORTER, FINAL, LONGER)]
    ran = [each for each in found if each is not None]
    if len(ran) < 3:
        return None
    means = [float(np.mean(each.losses[: len(SEEDS)])) for each in ran]
    if not np.isfinite(means).all():
        return None
    fall = -float(np.polyfit([each.steps for each in ran], means, 1)[0])
    return fall if fall > 0 else None


def table_of(record: Record) -> Table:
    """Compare all arms of a suite.

    The planned comparisons are those of every tuned arm with AdamW and with Muon; their
    p-values are corrected together.

    Args:
        record: of a suite.
    """
    slope = slope_of(record)
    lines = [_line(record, name, slope) for name in record.arms]
    known = sorted((x for x in lines if x is not None), key=lambda line: line.mean)
    void = [(x, arm.tuned.void) for x, arm in record.arms.items() if arm.tuned]
    skipped = [(x, arm.skipped) for x, arm in record.arms.items() if arm.skipped]
    return Table(
        tuple(_corrected(known)),
        slope,
        tuple((name, why) for name, why in void if why),
        tuple(skipped),
    )


def _line(record: Record, name: str, slope: float | None) -> Line | None:
    """The line of an arm that is finished and not void."""
    arm = record.arms[name]
    final, entry = arm.stage(FINAL), arm.tuned
    if final is None or entry is None or name not in _NOTES:
        return None
    losses = _losses(arm)
    to_adamw, to_muon = (_against(record, losses, x, name) for x in (ADAMW, MUON))
    ends = [x for ran in arm.ran for x in ran.losses]
    members = record.size["members"]
    steps = [x / members for x in arm.step_seconds]
    steps = steps or [final.seconds / final.steps / members]
    saved = None
    if slope is not None and to_adamw is not None:
        saved = (final.steps - to_adamw.mean / slope) / final.steps
    again = final.losses[len(SEEDS) :] or [losses[0]]
    return Line(
        arm=_NOTES[name],
        entry=entry,
        side=_side(arm),
        losses=losses,
        floor=abs(again[0] - losses[0]) if isfinite(losses[0]) else inf,
        adamw=to_adamw,
        muon=to_muon,
        steps=saved,
        diverged=sum(x == inf for x in ends),
        runs=len(ends),
        step_seconds=median(steps),
        slowest=max(steps),
        bytes_per_param=(arm.state_bytes or 0) / max(record.params, 1),
        seconds=sum(ran.seconds for ran in arm.ran),
        compiling=arm.compile_seconds or 0.0,
    )


def _against(
    record: Record, losses: Sequence[float], other: str, name: str
) -> Paired | None:
    """The difference from another arm."""
    known = _losses(record.arms.get(other, ArmRecord()))
    return None if other == name else paired(losses, known)


def _side(arm: ArmRecord) -> str:
    """Whether a better learning rate may lie beyond those of stage 2."""
    tried = [x[0] for ran in arm.ran if ran.stage == NARROWING for x in ran.members]
    tuned = arm.tuned and arm.tuned.tuned
    return side_of(tuned.rate, tried) if tuned and tried else ""


def _losses(arm: ArmRecord) -> tuple[float, ...]:
    """The final losses of an arm, one per seed."""
    final = arm.stage(FINAL)
    if final is None:
        return ()
    more = [x for ran in arm.ran if ran.stage == MORE for x in ran.losses]
    return *final.losses[: len(SEEDS)], *more


def _corrected(lines: Sequence[Line]) -> list[Line]:
    """The lines with Holm's correction over all planned comparisons."""
    tuned = [line for line in lines if not line.arm.equal]
    planned = [(line.name, ADAMW) for line in tuned if line.adamw is not None]
    planned += [
        (line.name, MUON)
        for line in tuned
        if line.muon is not None and line.name != ADAMW  # that pair is there already
    ]
    tests = {line.name: {ADAMW: line.adamw, MUON: line.muon} for line in lines}
    ps = [getattr(tests[name][other], "p", None) for name, other in planned]
    for (name, other), p in zip(planned, holm(ps), strict=True):
        test = tests[name][other]
        assert test is not None
        tests[name][other] = replace(test, corrected=p)
    return [
        replace(line, adamw=tests[line.name][ADAMW], muon=tests[line.name][MUON])
        for line in lines
    ]
