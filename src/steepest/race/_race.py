"""The race: every optimizer in its turn."""

import os
import platform
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import inf
from pathlib import Path

import jax

import steepest

from ._arrays import Shelf
from ._check import checked
from ._memory import OutOfMemory
from ._model import Model
from ._outcome import Outcome, Sweep
from ._plan import Plan
from ._problem import Problem
from ._program import Program
from ._purity import randomness
from ._settings import count_of, Settings, settings_of
from ._store import Nowhere, Store
from ._sweep import Look, looks
from ._watch import Watch
from .entrants import Entrant, entrant
from .problems import load


def race(
    problem: Problem | str | None = None,
    optimizers: Sequence[str] | None = None,
    *,
    learning_rates: Sequence[float] | None = None,
    seeds: int | Sequence[int] | None = None,
    steps: int | None = None,
    target: float | None = None,
    schedule: str | None = None,
    time_budget: float | None = None,
    at_once: int | None = None,
    folder: str | Path | None = None,
    resume: bool = False,
    watch: Watch | None = None,
) -> Outcome:
    """Train a model with several optimizers, and see who is best at what rate.

    All begin at the same params and see the same batches. All runs of one optimizer,
    every learning rate from every seed, are one program, which is compiled once.

    Args:
        problem: a `Problem`, or the name of one: `digits`, `my_module:problem`.
        optimizers: who takes part: `adamw`, `lookahead(adamw)`, `sgd(momentum=0.9)`. An
            optimizer that is not told its learning rate runs at all of those below.
        learning_rates: those to try.
        seeds: how many seeds, or which.
        steps: how many steps a run has.
        target: a metric worth reaching.
        schedule: how the learning rate changes, where an optimizer is not told: an
            expression of `rate` and `steps`, as `cosine_decay_schedule(rate, steps)`.
        time_budget: the seconds for all of it. Each optimizer gets its share of what is
            left, and stops where that is used up.
        at_once: how many runs may be in memory at once; by default as many as fit.
        folder: where to keep what is found, each optimizer's as soon as it is there. By
            default nowhere.
        resume: whether to go on with the race that is in `folder`. What is not said
            here is as it was there.
        watch: who is told how it goes.

    What is not said is as the problem says.
    """
    given = {
        "optimizers": optimizers,
        "learning_rates": learning_rates,
        "seeds": seeds,
        "steps": steps,
        "target": target,
        "schedule": schedule,
        "time_budget": time_budget,
    }
    store = Nowhere() if folder is None else Store(Path(folder))
    before = store.settings(resume)
    asked = before.get("problem", "digits") if problem is None else problem
    problem = checked(load(asked) if isinstance(asked, str) else asked)
    random = randomness(problem)
    name = problem.source or problem.name
    settings = settings_of(name, problem, given, before, random.seeds_differ)
    kind = lambda text: entrant(text, steps=settings.steps, schedule=settings.schedule)
    entrants = [kind(text) for text in settings.optimizers]
    compiler = partial(Program, at_once=count_of("at_once", at_once), shelf=Shelf())
    watch = Watch() if watch is None else watch
    runs = len(settings.learning_rates) * len(settings.seeds)
    sweeps: list[Sweep] = []
    missing: list[tuple[str, str]] = []
    with store.open(settings, problem):
        for remark in random.remarks:
            watch.remarks(remark)
        watch.begins([who.name for who in entrants], runs, settings.steps)
        end = time.monotonic() + (settings.time_budget or inf)
        for k, who in enumerate(entrants):
            now = time.monotonic()
            until = now + (end - now) / (len(entrants) - k)
            try:
                sweeps.append(
                    _turn(problem, who, settings, store, watch, until, compiler)
                )
            except _Absent as reason:
                missing.append((who.name, str(reason)))
    return Outcome(
        problem=problem.name,
        about=problem.about,
        measure=problem.measure,
        better=problem.better,
        target=settings.target,
        machine=machine(),
        sweeps=tuple(sweeps),
        missing=tuple(missing),
        remarks=random.remarks,
    )


class _Absent(Exception):
    """Why there is nothing of an optimizer."""


def _turn(
    problem: Problem,
    name: Entrant,
    settings: Settings,
    store: Store | Nowhere,
    watch: Watch,
    until: float,
    compiler: Callable[[Model, Plan], Program],
) -> Sweep:
    """One optimizer: what its runs have told, when they end or have to."""
    model = Model(problem, name)
    sweep = store.finished(model)
    if sweep is not None:
        watch.ends(sweep)
        return sweep
    begun = store.begun(model)
    sweep = None if begun is None else begun.sweep
    if not watch.stopped() and time.monotonic() < until:
        rates = settings.learning_rates if name.swept else (None,)
        plan = Plan(rates, settings.seeds, settings.steps)
        program = _program(model, plan, watch, compiler)
        for look in _named(name, looks(program, begun), watch):
            sweep = look.sweep
            watch.looks(sweep)
            if sweep.finished:
                store.keep(look)
            elif watch.stopped() or time.monotonic() >= until:
                store.keep_begun(look, now=True)
                break
            else:
                store.keep_begun(look)
    if sweep is None:
        raise _Absent("the race ended before its turn")
    watch.ends(sweep)
    return sweep


def _program(
    model: Model,
    plan: Plan,
    watch: Watch,
    compiler: Callable[[Model, Plan], Program],
) -> Program:
    """The program of an optimizer that can take part."""
    name = model.entrant.name
    watch.compiles(name)
    try:
        program = compiler(model, plan)
        _ = program.lowered
    except Exception as error:  # whatever an optimizer does not take: it is named
        raise _absent(name, watch, error) from error
    return program


def _named(name: Entrant, found: Iterator[Look], watch: Watch) -> Iterator[Look]:
    """The looks of an optimizer; if XLA cannot run it, it is named."""
    try:
        yield from found
    except (OutOfMemory, jax.errors.JaxRuntimeError) as error:
        raise _absent(name.name, watch, error) from error


def _absent(name: str, watch: Watch, error: Exception) -> _Absent:
    why = f"{type(error).__name__}: {error}".strip().splitlines()[0]
    if isinstance(error, OutOfMemory):
        why = str(error)
    watch.fails(name, why)
    return _Absent(why)


def machine() -> str:
    """Where this runs, in words."""
    device, count = jax.local_devices()[0], jax.local_device_count()
    kind = platform.machine() if device.platform == "cpu" else device.device_kind
    cores = f"{os.cpu_count()} cores, " if device.platform == "cpu" else ""
    many = f"{count} x " if count > 1 else ""
    versions = f"JAX {jax.__version__}, steepest {steepest.__version__}"
    return f"{many}{device.platform} ({cores}{kind}), {versions}"
