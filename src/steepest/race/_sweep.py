"""The runs of an optimizer, from evaluation to evaluation.

At an `Evaluation` the runs pause, and their losses and metrics are read.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from math import inf
from typing import ParamSpec, TypeVar

import numpy as np

from ._halving import halving_steps, survivors
from ._memory import OutOfMemory, ran_out
from ._outcome import Better, Sweep
from ._program import Program, Runs, Saved

P = ParamSpec("P")
T = TypeVar("T")
_EMPTY_EVALUATIONS = 3  # without steps; the fastest is the overhead


@dataclass(frozen=True)
class Begun:
    """Runs that were interrupted.

    Attributes:
        sweep: their results so far.
        saved: their params and states.
    """

    sweep: Sweep
    saved: Saved


@dataclass(frozen=True)
class Evaluation:
    """An evaluation of the runs after some steps.

    Attributes:
        sweep: their results so far.
        program: the program that runs them.
        runs: their params and states. The next evaluation donates these buffers, so
            save them before it.
    """

    sweep: Sweep
    program: Program
    runs: Runs

    def begun(self) -> Begun:
        """Everything needed to resume later."""
        return Begun(self.sweep, self.program.save(self.runs))


def evaluations(program: Program, begun: Begun | None = None) -> Iterator[Evaluation]:
    """Run an optimizer and yield an evaluation every few steps.

    Only steps are timed: the overhead of an evaluation is measured without any steps,
    and subtracted. One step is taken beforehand and discarded, because the first steps
    of a program are slow: in a tiny race they took most of the time. If memory runs out
    before the first evaluation, half as many runs are tried at once.

    Args:
        program: the program that runs them.
        begun: interrupted runs to resume. The store has checked that code, data and
            plan are the same.
    """
    if begun is not None and begun.sweep.at_once is not None:
        # The same split into parts gives bitwise the same numbers.
        program = program.with_at_once(begun.sweep.at_once)
    while True:
        evaluation = None
        try:
            compiling, program = _timed(program.fitted)
            for evaluation in _evaluations(program, compiling, begun):
                yield evaluation
            return
        except Exception as error:
            if isinstance(error, OutOfMemory) or not ran_out(error):
                raise
            if evaluation is not None or program.at_once == 1:
                raise OutOfMemory(_too_little(program, evaluation)) from error
            program = program.with_at_once(program.at_once // 2)


def _evaluations(
    program: Program, compiling: float, begun: Begun | None
) -> Iterator[Evaluation]:
    if begun is not None and begun.sweep.stopped:
        program = program.only(begun.sweep.running)
    program.go_on(program.empty(), 0, 1, fresh=True)  # warm up
    if begun is not None:
        sweep, runs = begun.sweep, program.load(begun.saved)
        metric = sweep.metric[..., 0]
    else:
        runs, (_, _, metric) = program.go_on(program.empty(), 0, 0, fresh=True)
        sweep = None
    done = 0 if sweep is None else sweep.steps[-1]
    overhead = inf
    for _ in range(_EMPTY_EVALUATIONS):
        seconds, (runs, _) = _timed(program.go_on, runs, done, 0)
        overhead = min(overhead, seconds)
    times = program.plan.evaluation_steps
    halves = halving_steps(times) if program.plan.halving else ()
    for start, end in pairwise(times):
        if start < done:
            continue
        seconds, (runs, values) = _timed(program.go_on, runs, start, end - start)
        seconds = max(0.0, seconds - overhead)
        first, mean, after = values
        if sweep is None:
            _check_losses(program, first)
            sweep = _begun(program, compiling, first, metric)
        sweep = _longer(sweep, end, seconds, mean, after, program.computed)
        if end in halves:
            halved = _halved(sweep, program.model.problem.better)
            places = [k for k, p in enumerate(sweep.running) if p in halved.running]
            overhead /= program.computed
            program, runs = program.picked(runs, places)
            overhead *= program.computed
            runs, _ = program.go_on(runs, end, 0)  # transfers them to the devices
            sweep = halved
        yield Evaluation(sweep, program, runs)


def _check_losses(program: Program, first: np.ndarray) -> None:
    """Raise if the loss is not finite at the initial params, for every seed."""
    if np.isfinite(first).any():
        return
    value = "NaN" if np.isnan(first).any() else "infinite"
    raise ValueError(
        f"race: the loss of the problem {program.model.problem.name!r} is {value} at "
        "the initial params, for every seed. Check `loss`, `init` and `data`."
    )


def _too_little(program: Program, evaluation: Evaluation | None) -> str:
    when = "" if evaluation is None else f" after step {evaluation.sweep.steps[-1]}"
    return (
        f"out of memory{when} with {program.at_once} runs at once. Use a smaller "
        "model or batch, or fewer runs at once: `at_once` (--at-once)."
    )


def _begun(
    program: Program, compiling: float, loss: np.ndarray, metric: np.ndarray
) -> Sweep:
    """The results before the first step."""
    plan = program.plan
    return Sweep(
        name=program.model.entrant.name,
        rates=plan.rates,
        seeds=plan.seeds,
        steps=(0,),
        loss=loss[..., None],
        metric=metric[..., None],
        seconds=(0.0,),
        compiling=compiling,
        bytes_per_param=program.traced.bytes_per_param,
        parameters=program.traced.parameters,
        planned=plan.steps,
        at_once=program.at_once if program.limited else None,
        stopped=(None,) * len(plan.rates) if plan.halving else (),
        shared=(0,) if plan.halving else (),
    )


def _halved(sweep: Sweep, better: Better) -> Sweep:
    """The results with hopeless learning rates marked as stopped now."""
    kept, now = survivors(sweep, better), sweep.steps[-1]
    gone = [k for k in sweep.running if k not in kept]
    pairs = enumerate(sweep.stopped)
    return replace(sweep, stopped=tuple(now if k in gone else s for k, s in pairs))


def _longer(
    sweep: Sweep,
    end: int,
    seconds: float,
    loss: np.ndarray,
    metric: np.ndarray,
    computed: int,
) -> Sweep:
    """The results after some more steps. Stopped learning rates have none: NaN."""
    if sweep.stopped:
        whole = np.full((2, len(sweep.rates), len(sweep.seeds)), np.nan)
        whole[:, sweep.running] = loss, metric
        loss, metric = whole
    return replace(
        sweep,
        steps=(*sweep.steps, end),
        loss=np.concatenate([sweep.loss, loss[..., None]], axis=-1),
        metric=np.concatenate([sweep.metric, metric[..., None]], axis=-1),
        seconds=(*sweep.seconds, sweep.seconds[-1] + seconds),
        shared=(*sweep.shared, computed) if sweep.shared else (),
    )


def _timed(f: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> tuple[float, T]:
    began = time.perf_counter()
    result = f(*args, **kwargs)
    return time.perf_counter() - began, result
