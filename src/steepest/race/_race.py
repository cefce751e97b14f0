"""The race: runs every optimizer in turn."""

import os
import platform
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from math import inf
from pathlib import Path

import jax

import steepest

from ._arguments import names_its_arguments
from ._arrays import Shelf
from ._check import checked
from ._direction import direction
from ._memory import OutOfMemory
from ._model import Model
from ._outcome import Outcome, Sweep
from ._plan import RunPlan
from ._problem import Problem
from ._program import Program
from ._purity import randomness
from ._settings import count_of, Settings, settings_of
from ._store import Nowhere, Store
from ._sweep import Evaluation, evaluations
from ._watch import Watch
from .entrants import ADVICE, Entrant, entrant, Items, TRACED, Value
from .problems import DEFAULT, load


@names_its_arguments
def race(
    problem: Problem | str | None = None,
    optimizers: Items | None = None,
    *,
    learning_rates: Sequence[float] | None = None,
    seeds: int | Sequence[int] | None = None,
    steps: int | None = None,
    target: float | None = None,
    schedule: str | None = None,
    time_budget: float | None = None,
    sweep: Mapping[str, Sequence[Value]] | None = None,
    halving: bool | None = None,
    at_once: int | None = None,
    folder: str | Path | None = None,
    resume: bool = False,
    watch: Watch | None = None,
) -> Outcome:
    """Train a model with several optimizers and find the best learning rate of each.

    All runs start from the same params and see the same batches. All runs of one
    optimizer (every learning rate, every seed) are one program, compiled once. Omitted
    options default to the problem's.

    Args:
        problem: a `Problem`, or the name of one: `digits`, `my_module:problem`. By
            default `small_bytes`.
        optimizers: names and expressions, such as `adamw` and `lookahead(adamw)`;
            your own, `my_module:mine`; or objects: an optimizer of steepest or Optax,
            or a function that takes a learning rate and returns one. A dict names
            them: `{"mine": lambda rate: optax.adam(rate)}`. An optimizer without a
            learning rate of its own runs at all `learning_rates`.
        learning_rates: the learning rates to try.
        seeds: the number of seeds, or a list of them.
        steps: number of steps per run.
        target: a value of the metric; the race counts steps and seconds to reach it.
        schedule: learning-rate schedule for optimizers without one: an expression of
            `rate` and `steps`, such as `cosine_decay_schedule(rate, steps)`.
        time_budget: total time in seconds. Each optimizer gets an equal share of the
            time left, and stops when it is used up.
        sweep: values of a second hyperparameter to try, such as `{"weight_decay": [0,
            0.1]}`. Each optimizer that takes it runs once for each value, as an entrant
            of its own: `adamw(weight_decay=0.1)`. Several are combined in all ways.
        halving: whether to stop the hopeless learning rates of each optimizer after 1/4
            and 1/2 of the steps. The better half goes on, with the neighbours of the
            best and those almost as good. By default all run to the end.
        at_once: maximum number of runs in memory at once; by default as many as fit.
        folder: where to save the results, after each optimizer. By default they are
            not saved.
        resume: whether to continue the race in `folder`. Omitted options then default
            to those of that race.
        watch: is notified of progress.
    """
    arguments = {
        "optimizers": optimizers,
        "learning_rates": learning_rates,
        "seeds": seeds,
        "steps": steps,
        "target": target,
        "schedule": schedule,
        "time_budget": time_budget,
        "sweep": sweep,
        "halving": halving,
    }
    store = Nowhere() if folder is None else Store(Path(folder))
    before = store.settings(resume)
    source = before.get("problem", DEFAULT) if problem is None else problem
    problem = checked(load(source) if isinstance(source, str) else source)
    random = randomness(problem)
    name = problem.source or problem.name
    settings = settings_of(name, problem, arguments, before, random.seeds_differ)
    remarks = (*random.remarks, *_repeats(problem, settings.steps), *problem.remarks)
    remarks += (*direction(problem), *settings.remarks)
    plan = {"steps": settings.steps, "schedule": settings.schedule}
    entrants = [entrant(x, **plan, name=k) for k, x in settings.entrants.items()]
    compiler = partial(Program, at_once=count_of("at_once", at_once), shelf=Shelf())
    watch = Watch() if watch is None else watch
    with store.open(settings, problem):
        for remark in remarks:
            watch.remarks(remark)
        sweeps, missing = _turns(problem, entrants, settings, store, watch, compiler)
    return Outcome(
        problem=problem.name,
        about=problem.about,
        measure=problem.measure,
        better=problem.better,
        target=settings.target,
        machine=machine(),
        sweeps=tuple(sweeps),
        missing=tuple(missing),
        remarks=remarks,
        schedule=settings.schedule,
        source=problem.source,
        halving=settings.halving,
        written=settings.written,
    )


def _repeats(problem: Problem, steps: int) -> Iterator[str]:
    """A remark if the batches repeat."""
    many = problem.cycle
    if many is not None and 1 < many < steps:
        # A loader was read for the steps of the problem, and may have more.
        more = f" Make the problem with steps={steps} to read more."
        yield (
            f"There are {many} different batches for {steps} steps: after step {many} "
            "they repeat in the same order."
            f"{more if many >= problem.steps else ''}"
        )


class _Absent(Exception):
    """The reason why an optimizer has no results."""


def _turns(
    problem: Problem,
    entrants: Sequence[Entrant],
    settings: Settings,
    store: Store | Nowhere,
    watch: Watch,
    compiler: Callable[[Model, RunPlan], Program],
) -> tuple[list[Sweep], list[tuple[str, str]]]:
    """Run all optimizers: the results, and those without results, with the reasons."""
    sweeps: list[Sweep] = []
    missing: list[tuple[str, str]] = []
    runs = len(settings.learning_rates) * len(settings.seeds)
    watch.begins([each.name for each in entrants], runs, settings.steps)
    end = time.monotonic() + (settings.time_budget or inf)
    for k, each in enumerate(entrants):
        now = time.monotonic()
        until = now + (end - now) / (len(entrants) - k)
        try:
            sweeps.append(_turn(problem, each, settings, store, watch, until, compiler))
        except _Absent as reason:
            missing.append((each.name, str(reason)))
    return sweeps, missing


def _turn(
    problem: Problem,
    each: Entrant,
    settings: Settings,
    store: Store | Nowhere,
    watch: Watch,
    until: float,
    compiler: Callable[[Model, RunPlan], Program],
) -> Sweep:
    """Run one optimizer until its runs end, or the time is up."""
    model = Model(problem, each)
    sweep = store.finished(model)
    if sweep is not None:
        watch.ends(sweep)
        return sweep
    begun = store.begun(model)
    sweep = None if begun is None else begun.sweep
    if not watch.stopped() and time.monotonic() < until:
        rates = settings.learning_rates if each.swept else (None,)
        plan = RunPlan(rates, settings.seeds, settings.steps, settings.halving)
        program = _program(model, plan, watch, compiler)
        for evaluation in _named(each.name, evaluations(program, begun), watch):
            sweep = evaluation.sweep
            watch.evaluates(sweep)
            if sweep.finished:
                store.keep(evaluation)
            elif watch.stopped() or time.monotonic() >= until:
                store.keep_begun(evaluation, now=True)
                break
            else:
                store.keep_begun(evaluation)
    if sweep is None:
        raise _Absent("the race ended before its turn")
    watch.ends(sweep)
    return sweep


def _program(
    model: Model,
    plan: RunPlan,
    watch: Watch,
    compiler: Callable[[Model, RunPlan], Program],
) -> Program:
    """Trace the program of an optimizer, or raise `_Absent`."""
    name = model.entrant.name
    watch.compiles(name)
    try:
        program = compiler(model, plan)
        _ = program.lowered
    except Exception as error:  # an optimizer may not support these params
        raise _absent(name, watch, error) from error
    return program


def _named(name: str, run: Iterator[Evaluation], watch: Watch) -> Iterator[Evaluation]:
    """Run an optimizer; raise `_Absent` if XLA cannot run it."""
    try:
        yield from run
    except (OutOfMemory, jax.errors.JaxRuntimeError) as error:
        raise _absent(name, watch, error) from error


def _absent(name: str, watch: Watch, error: Exception) -> _Absent:
    why = f"{type(error).__name__}: {error}".strip().splitlines()[0]
    if isinstance(error, TRACED):
        why = f"{why.rstrip('.')}. {ADVICE}"
    if isinstance(error, OutOfMemory):
        why = str(error)
    watch.fails(name, why)
    return _Absent(why)


def machine() -> str:
    """The machine and the versions, in words."""
    device, count = jax.local_devices()[0], jax.local_device_count()
    kind = platform.machine() if device.platform == "cpu" else device.device_kind
    cores = f"{os.cpu_count()} cores, " if device.platform == "cpu" else ""
    many = f"{count} x " if count > 1 else ""
    versions = f"JAX {jax.__version__}, steepest {steepest.__version__}"
    return f"{many}{device.platform} ({cores}{kind}), {versions}"
