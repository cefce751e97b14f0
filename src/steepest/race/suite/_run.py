"""Run the suite: arm after arm, while the programs of the next ones are compiled."""

import time
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from math import inf
from pathlib import Path
from statistics import median

import jax

from .._fingerprint import check_same
from ._arms import Arm
from ._compiling import compiling, Program, usual_ahead
from ._members import Data, data_of, Member, Members, Rest, state_bytes
from ._protocol import Entry, FINAL, missing, Request, stages, work
from ._record import ArmRecord, new_record, Ran, Record, searched
from ._size import Size

Say = Callable[[str], None]
_ROUNDS, _STEPS = 3, (2, 14)  # measurements of the time of a step
_RESERVE = 0.02  # part of the time for these measurements
_SPARE = 1.05  # a program may be slower than measured
_EXTENDED = 1.2  # and some arms need more programs than the shortest search
OUT_OF_TIME, STOPPED = "the time budget was used up", "the suite was stopped"


def run_suite(
    size: Size,
    arms: Sequence[Arm],
    path: Path,
    *,
    resume: bool = False,
    time_budget: float | None = None,
    partly: bool = False,
    ahead: int | None = None,
    note: str = "",
    stopped: Callable[[], bool] = lambda: False,
    say: Say = print,
) -> Record:
    """Run the suite, and save its results after every program.

    Args:
        size: of the model and of the runs.
        arms: what to compare, in this order.
        path: of the file for the results.
        resume: whether to continue with the results in the file. If `size` has more
            seeds than they, these are added; if it has fewer, those in the file count.
        time_budget: in seconds. Arms that do not fit are skipped, and say so.
        partly: whether to begin an arm that does not fit, to finish it in a later call.
        ahead: number of programs to compile at the same time, while others run; 0 to
            compile each in its turn. By default 0 on a CPU.
        note: a sentence for the page, such as what else ran on the machine.
        stopped: whether to stop before the next program.
        say: called with a line about each program.
    """
    began = time.monotonic()
    ahead = usual_ahead() if ahead is None else ahead
    data = data_of(size)
    record = new_record(size, data)
    if resume and path.exists():
        before = Record.load(path)
        then, now = before.fingerprint, record.fingerprint
        check_same(path, then, now, name="suite", place="file")
        # Seeds are only added.
        size = size.but(more_seeds=size.more_seeds or before.size["more_seeds"])
        record = before
        record.size = size.as_dict()
    elif path.exists():
        raise FileExistsError(
            f"suite: {path} exists. Continue it with `--resume`, or use another file."
        )
    spent, record.note = record.seconds, note or record.note
    record.train_bytes, record.held_out_bytes = len(data["train"]), data["test"].size
    end = inf if time_budget is None else began + time_budget
    reserve = 0.0 if time_budget is None else _RESERVE * time_budget

    def save() -> None:
        record.seconds = round(spent + time.monotonic() - began, 1)
        record.save(path)

    for arm in arms:
        known = record.arms.setdefault(arm.name, ArmRecord())
        if not _installed(arm):
            known.skipped = f"{arm.needs} is not installed"
            say(f"{arm.name}: skipped: {known.skipped}")
    save()
    suite = _Suite(size, data, record, save, say, stopped)
    suite.until(end - reserve, reserve, partly)
    able = [arm for arm in arms if _installed(arm)]
    left = lambda: suite.left
    with compiling(size, able, data, ahead, suite.needs, left, Members) as programs:
        for arm, program in programs:
            suite.turn(arm, program)
    suite.measure_steps()
    return record


def _installed(arm: Arm) -> bool:
    return not arm.needs or find_spec(arm.needs) is not None


class _Suite:
    """The state of a suite that runs."""

    def __init__(
        self,
        size: Size,
        data: Data,
        record: Record,
        save: Callable[[], None],
        say: Say,
        stopped: Callable[[], bool],
    ) -> None:
        self._stopped = stopped
        self._size, self._data, self._record = size, data, record
        self._save, self._say = save, say
        self._programs: dict[str, Members] = {}

    def until(self, end: float, reserve: float, partly: bool) -> None:
        """Limit the time.

        Args:
            end: when to stop training, as `time.monotonic` counts.
            reserve: seconds after it to time the steps.
            partly: whether to begin an arm that does not fit.
        """
        self._end, self._reserve, self._partly = end, reserve, partly

    @property
    def _entries(self) -> dict[str, Entry]:
        arms = self._record.arms.items()
        return {name: arm.tuned for name, arm in arms if arm.tuned is not None}

    @property
    def left(self) -> float:
        """The seconds that are left for training."""
        return -inf if self._stopped() else self._end - time.monotonic()

    @property
    def _over(self) -> str:
        return STOPPED if self._stopped() else OUT_OF_TIME

    def needs(self, members: Members) -> bool:
        """Whether an arm has something to run: not if it has finished, or too late.

        Args:
            members: its program.
        """
        record = self._record.arms.get(members.arm.name, ArmRecord())
        known = record.program == members.digest
        return self.left > 0 and not (known and self._is_done(members.arm, record))

    def _is_done(self, arm: Arm, record: ArmRecord) -> bool:
        """Whether an arm has all runs of the protocol, and its steps were timed."""
        unfinished = record.tuned is None or not record.quiet
        if unfinished or missing(arm, self._entries):
            return False
        requests = stages(arm, self._size, self._entries)
        return searched(requests, record.answer)[1] is not None

    def turn(self, arm: Arm, program: Program) -> None:
        """Run one arm, or note why it did not run.

        Args:
            arm: the optimizer.
            program: compiles its program, or waits for it.
        """
        record = self._record.arms[arm.name]
        why = missing(arm, self._entries)
        if not why and self.left <= 0:
            why = self._over
        if not why:
            try:
                why = self._run(arm, program(), record)
            except (jax.errors.JaxRuntimeError, ValueError, TypeError) as error:
                # The other arms can still run.
                why = f"{type(error).__name__}: {str(error).splitlines()[0][:200]}"
        if why:
            self._record.arms[arm.name].skipped = why  # `_run` may have begun it again
            self._say(f"{arm.name}: skipped: {why}")
        self._save()

    def _run(self, arm: Arm, members: Members, record: ArmRecord) -> str:
        """Run the stages. Returns why they stopped early, or an empty string."""
        if record.program not in ("", members.digest):
            last = record.stage(FINAL)
            if last is not None and last.seconds > self.left:
                return self._over
            if last is not None and self._repeats(members.compile(), last):
                self._say(f"{arm.name}: its code changed, and its results did not")
                record.quiet = False  # a step may take another time
            else:
                self._say(f"{arm.name}: its code changed, so it begins again")
                record = self._record.arms[arm.name] = ArmRecord()
        record.program = members.digest
        record.state_bytes, self._record.params = state_bytes(arm, self._size)
        if self._is_done(arm, record):
            self._say(f"{arm.name}: finished before")
            return ""
        self._programs[arm.name] = members.compile()
        members.step_seconds(1, 2)  # the first call is slow
        step = members.step_seconds(4, 12)
        step = step or members.step_seconds(4, 24)
        needed = _SPARE * step * work(arm, self._size)
        needed -= sum(ran.seconds for ran in record.ran)
        record.compile_seconds = round(members.compile_seconds, 2)
        self._say(
            f"{arm.name}: compiled in {members.compile_seconds:.1f} s, "
            f"{1e3 * step:.1f} ms per step of {self._size.members} runs, "
            f"needs {max(needed, 0):.0f} s"
        )
        if needed > self.left and not self._partly:
            return f"{self._over}: it needs {needed:.0f} s"
        record.entry = None  # until it has all runs of the protocol

        def answer(request: Request) -> Ran | None:
            ran = record.answer(request)
            if ran is None and _SPARE * step * request.steps <= self.left:
                ran = self._ask(members, request)
                record.ran.append(ran)
                self._save()
            return ran

        used, entry = searched(stages(arm, self._size, self._entries), answer)
        if entry is None:
            return self._over
        record.ran = used  # an earlier search may have asked for others
        record.finish(entry)
        self._say(f"{arm.name}: {f'void: {entry.void}' if entry.void else entry.tuned}")
        return ""

    def _repeats(self, members: Members, last: Ran) -> bool:
        """Whether the final runs end as before, to the last bit."""
        some = tuple(Member(rate, decay, int(k)) for rate, decay, k in last.members)
        again = self._ask(members, Request(FINAL, last.steps, some, Rest(*last.rest)))
        return (again.nats, again.curves) == (last.nats, last.curves)

    def _ask(self, members: Members, request: Request) -> Ran:
        """Run one program."""
        result = members(request.members, request.rest, request.steps)
        ends = " ".join(f"{x:.4f}" for x in result.nats)
        self._say(
            f"{members.arm.name}: {request.stage}, {request.steps} steps, "
            f"{result.seconds:.1f} s: {ends}"
        )
        return Ran.of(request, result)

    def measure_steps(self) -> None:
        """Time the steps of all arms, when nothing is compiled any more."""
        for name, members in self._programs.items():
            record = self._record.arms[name]
            if record.tuned is None:
                continue
            began = time.monotonic()
            times = [members.step_seconds(*_STEPS)]
            needed = (_ROUNDS - 1) * (time.monotonic() - began)
            if needed > self.left + self._reserve:
                continue
            times += [members.step_seconds(*_STEPS) for _ in range(_ROUNDS - 1)]
            record.step_seconds = [round(x, 7) for x in times]
            record.quiet = True
            self._say(f"{name}: {1e3 * median(times):.2f} ms per step")
            self._save()


def calibrate(
    size: Size,
    arms: Sequence[Arm],
    *,
    budget: float,
    ahead: int | None = None,
    until: float = inf,
    say: Say = print,
) -> dict[str, tuple[float, float]]:
    """Compile and time every arm. Returns the seconds to compile, and of a step.

    Args:
        size: of the suite.
        arms: what to time.
        budget: the seconds for which to suggest a number of steps.
        ahead: number of programs to compile at the same time.
        until: seconds after which to stop.
        say: called with a line about each arm, and the plan.
    """
    began = time.monotonic()
    ahead = usual_ahead() if ahead is None else ahead
    times: dict[str, tuple[float, float]] = {}
    total = 0.0
    able = [arm for arm in arms if _installed(arm)]
    left = lambda: began + until - time.monotonic()
    data = data_of(size)
    with compiling(size, able, data, ahead, left=left, make=Members) as programs:
        for arm, program in programs:
            if left() <= 0:
                say(f"{arm.name}: not timed, {until:.0f} s are over")
                continue
            try:
                members = program()
                members.step_seconds(1, 2)
                step = members.step_seconds(2, 22)
            except (jax.errors.JaxRuntimeError, ValueError, TypeError) as error:
                say(f"{arm.name}: {type(error).__name__}: {str(error)[:300]}")
                continue
            times[arm.name] = members.compile_seconds, step
            total += step * work(arm, size)
            say(
                f"{arm.name:20} compile {members.compile_seconds:6.1f} s   step "
                f"{1e3 * step:8.2f} ms   arm {step * work(arm, size):6.1f} s   "
                f"so far {total:6.0f} s"
            )
    say(
        f"{size.flops:.2g} FLOPs in a run; all arms need {total:.0f} s at {size.steps} "
        f"steps; {budget:.0f} s are enough for "
        f"{int(size.steps * budget / total / _EXTENDED) if total else 0} steps"
    )
    return times
