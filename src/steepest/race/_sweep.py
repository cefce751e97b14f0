"""An optimizer's runs, from look to look."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from math import inf
from typing import Any

import numpy as np

from ._memory import OutOfMemory, ran_out
from ._outcome import Sweep
from ._program import Program, Saved

_LOOKS_AT_NOTHING = 3  # the shortest of them is what a look takes


@dataclass(frozen=True)
class Begun:
    """Runs that were stopped on their way.

    Attributes:
        sweep: what they have told so far.
        saved: what they go on with.
    """

    sweep: Sweep
    saved: Saved


@dataclass(frozen=True)
class Look:
    """What is seen of the runs after some steps.

    Attributes:
        sweep: what they have told so far.
        program: what is running them.
        runs: what they go on with: to be saved before the next look, or never.
    """

    sweep: Sweep
    program: Program
    runs: list[Any]

    def begun(self) -> Begun:
        """All that is needed to go on another time."""
        return Begun(self.sweep, self.program.save(self.runs))


def looks(program: Program, begun: Begun | None = None) -> Iterator[Look]:
    """Run the runs of an optimizer, and look at them now and then.

    The seconds are those of the steps: what a look takes is measured by looking when
    nothing has happened, and left out. Runs that do not fit in memory together take
    turns: the fewer at once, the less there is.

    Args:
        program: what runs them.
        begun: where to go on. It is of the same code, data and plan: the store, which
            has it from a file, has compared them.
    """
    if begun is not None and begun.sweep.at_once is not None:
        # The same division gives the same numbers to the last bit.
        program = program.with_at_once(begun.sweep.at_once)
    while True:
        look = None
        try:
            compiling, program = _timed(program.fitted)
            for look in _looks(program, compiling, begun):
                yield look
            return
        except Exception as error:
            if isinstance(error, OutOfMemory) or not ran_out(error):
                raise
            if look is not None or program.at_once == 1:
                raise OutOfMemory(_too_little(program, look)) from error
            program = program.with_at_once(program.at_once // 2)


def _looks(program: Program, compiling: float, begun: Begun | None) -> Iterator[Look]:
    if begun is not None:
        sweep, runs, metric = begun.sweep, program.load(begun.saved), None
    else:
        runs, (_, _, metric) = program.go_on(program.empty(), 0, 0, fresh=True)
        sweep = None
    done = 0 if sweep is None else sweep.steps[-1]
    a_look = inf
    for _ in range(_LOOKS_AT_NOTHING):
        seconds, (runs, _) = _timed(program.go_on, runs, done, 0)
        a_look = min(a_look, seconds)
    for start, end in pairwise(program.plan.looks):
        if start < done:
            continue
        seconds, (runs, told) = _timed(program.go_on, runs, start, end - start)
        seconds = max(0.0, seconds - a_look)
        if sweep is None:
            _check_losses(program, told[0])
            sweep = _begun(program, compiling, told[0], metric)
        sweep = _longer(sweep, end, seconds, told[1], told[2])
        yield Look(sweep, program, runs)


def _check_losses(program: Program, first: np.ndarray) -> None:
    """Refuse a loss that is no number before anything was learnt."""
    if np.isfinite(first).any():
        return
    found = "NaN" if np.isnan(first).any() else "infinite"
    raise ValueError(
        f"race: the loss of the problem {program.model.problem.name!r} is {found} in "
        "the first step, from every seed, before an optimizer has changed the params. "
        "Check `loss`, `init` and `data`."
    )


def _too_little(program: Program, look: Look | None) -> str:
    when = "" if look is None else f" after step {look.sweep.steps[-1]}"
    return (
        f"the memory ran out{when} with {program.at_once} runs at once. Use a smaller "
        "model or batch, or fewer runs at once: `at_once` (--at-once)."
    )


def _begun(program: Program, compiling: float, loss: Any, metric: Any) -> Sweep:
    """Before the first step."""
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
        at_once=program.at_once if program.split else None,
    )


def _longer(sweep: Sweep, end: int, seconds: float, loss: Any, metric: Any) -> Sweep:
    """After some more steps."""
    return replace(
        sweep,
        steps=(*sweep.steps, end),
        loss=np.concatenate([sweep.loss, loss[..., None]], axis=-1),
        metric=np.concatenate([sweep.metric, metric[..., None]], axis=-1),
        seconds=(*sweep.seconds, sweep.seconds[-1] + seconds),
    )


def _timed(f: Callable[..., Any], *args: Any) -> tuple[float, Any]:
    began = time.perf_counter()
    found = f(*args)
    return time.perf_counter() - began, found
