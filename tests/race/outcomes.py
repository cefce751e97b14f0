"""Made-up races, for the tests of tables, plots and pages."""

import functools
from dataclasses import replace

import numpy as np

from steepest.race import Outcome, Sweep
from steepest.race.report._page import page
from steepest.race.report._pictures import pictures

RATES = (1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 3e-1)
LONG = "chain(clip_by_global_norm(1.0), adamw(b2=0.95))"


def sweep(
    name="adamw",
    *,
    best=3e-3,
    skill=0.984,
    limit=0.2,
    rates=RATES,
    seeds=(0, 1, 2),
    times=41,
    planned=1000,
    done=1.0,
    speed=1.0,
    state=8.0,
    noise=0.003,
    pace=1.0,
):
    """One optimizer, best at the learning rate `best`, diverging above `limit`."""
    rng = np.random.default_rng(sum(map(ord, name)))
    steps = np.linspace(0, planned, times).round().astype(int)
    steps = steps[: max(1, round(done * times))]
    far = [abs(np.log10((rate or best) / best)) for rate in rates]
    shape = (len(rates), len(seeds), len(steps))
    # Seeds are good or bad for all optimizers alike.
    luck = np.random.default_rng(0).normal(size=len(seeds))[:, None]
    chance = (0.4 * rng.normal(size=shape) + luck) * noise
    end = skill - 0.12 * np.square(far)[:, None, None] + chance[:, :, :1]
    tau = 0.08 / pace * max(planned, 1) * (1 + np.asarray(far)[:, None, None])
    grown = 1 - np.exp(-steps / tau)
    metric = np.clip(0.1 + (end - 0.1) * grown + 0.3 * chance, 0, 1)
    slow = 1 - np.exp(-steps / tau / 4)
    loss = 2.4 * np.exp(-(3 + 90 * (end - 0.95)) * slow - grown + 40 * chance * slow)
    for k, rate in enumerate(rates):
        if rate is not None and rate > limit:
            gone = rng.integers(1, max(len(steps), 2), size=len(seeds))
            for seed, evaluation in enumerate(gone[: None if rate > 2 * limit else 1]):
                loss[k, seed, evaluation:] = np.nan
                metric[k, seed, evaluation:] = np.nan
    return Sweep(
        name=name,
        rates=tuple(rates),
        seeds=tuple(seeds),
        steps=tuple(int(s) for s in steps),
        loss=loss,
        metric=metric,
        seconds=tuple(float(s) * speed * 1e-3 * len(far) * len(seeds) for s in steps),
        compiling=2.5,
        bytes_per_param=state,
        parameters=21_514,
        planned=planned,
    )


def outcome(*sweeps, **changes):
    """A race on digits between these."""
    race = Outcome(
        problem="digits",
        about="Handwritten digits of 8 x 8 pixels, told apart by a small conv net.",
        measure="accuracy",
        better="higher",
        target=0.95,
        machine="2 cores of a made-up CPU, Python 3.11, JAX 0.0",
        sweeps=tuple(sweeps),
    )
    return replace(race, **changes)


def digits():
    """A realistic race: eight optimizers, eight rates, three seeds, some failures."""
    return outcome(
        sweep("sgd", best=0.3, skill=0.951, limit=1, state=0.0, speed=0.8, pace=0.3),
        sweep(
            "sgd(momentum=0.9)", best=0.1, skill=0.972, limit=0.2, state=4.0, pace=0.6
        ),
        sweep("adamw", best=3e-3, skill=0.984, limit=0.2),
        sweep(LONG, best=3e-3, skill=0.983, speed=1.1, pace=0.8),
        sweep("lion", best=3e-4, skill=0.981, limit=0.02, done=0.6, state=4.0),
        sweep(
            "muon", best=1e-2, skill=0.985, limit=0.2, speed=1.9, state=4.2, pace=1.6
        ),
        sweep("broken", limit=1e-9),
        sweep("lbfgs", rates=(None,), skill=0.93, speed=4.0, state=80.0, noise=0.006),
        missing=(("polyak_sgd", "it needs `f_min`, which this problem does not say."),),
    )


def valley():
    """A metric to minimize, over many decades, with zeros at the end."""
    result = []
    for k, name in enumerate(("sgd", "adam", "lbfgs(memory_size=20)")):
        s = sweep(name, best=10.0 ** (-3 + k), limit=0.2, noise=0.02)
        metric = 10 ** (3 - (4 * k + 3) * 1.4 * s.metric)
        loss = metric.copy()
        loss[..., -3:] *= 0.0 if k == 2 else 1.0
        result.append(replace(s, metric=metric, loss=loss))
    about = "A long curved valley."
    return outcome(
        *result, problem="rosenbrock", about=about, measure="f", better="lower"
    )


def negative():
    """Negative losses, which have no logarithm."""
    result = (sweep("adam"), sweep("lion"))
    below = (replace(s, loss=s.loss - 1, metric=-s.metric) for s in result)
    return outcome(*below, better="lower")


def many():
    """More optimizers than colors."""
    each = {"times": 9, "rates": RATES[2::2]}
    names = [f"optimizer_{k}" for k in range(19)]
    return outcome(
        *(sweep(n, skill=0.9 + 0.004 * k, **each) for k, n in enumerate(names))
    )


def stopped(s, *places, after=10):
    """The sweep, with the learning rates at these places stopped by halving."""
    loss, metric = s.loss.copy(), s.metric.copy()
    for values in (loss, metric):
        values[list(places), :, after + 1 :] = np.nan
    steps = [s.steps[after] if k in places else None for k in range(len(s.rates))]
    left = s.runs - len(places) * len(s.seeds)
    shared = [0, *after * [s.runs], *(len(s.steps) - 1 - after) * [left]]
    spent = [0.0, *np.cumsum(np.diff(s.seconds) * np.array(shared[1:]) / s.runs)]
    return replace(
        s,
        loss=loss,
        metric=metric,
        stopped=tuple(steps),
        shared=tuple(shared),
        seconds=tuple(map(float, spent)),
    )


def halved():
    """A race with halving: some rates are stopped, one of them next to the best."""
    return outcome(
        stopped(sweep("adamw", limit=0.2), 0, 1, 5, 6, 7),
        stopped(sweep("lion", best=3e-4), 4, 5, 6, 7),
        stopped(sweep("muon", best=1e-2, skill=0.985), 0, 1, 2, 5),
        stopped(sweep("lost", limit=1e-9), 0, 1),
        sweep("lbfgs", rates=(None,), skill=0.93),
        source="digits",
        halving=True,
    )


EDGES = {
    "one seed": lambda: outcome(sweep("adamw", seeds=(3,)), sweep("lion", seeds=(3,))),
    "one optimizer": lambda: outcome(sweep("adamw")),
    "one rate": lambda: outcome(sweep(rates=(1e-3,)), sweep("lion", rates=(1e-3,))),
    "no rate": lambda: outcome(sweep("lbfgs", rates=(None,))),
    "one evaluation": lambda: outcome(sweep("adamw", times=1, planned=0)),
    "nothing": outcome,
    "nothing but missing": lambda: outcome(missing=(("adam", "No time was left."),)),
    "all diverged": lambda: outcome(sweep(limit=1e-9), sweep("lion", limit=1e-9)),
    "many decades": valley,
    "below zero": negative,
    "no target": lambda: outcome(sweep("adamw"), sweep("lion"), target=None),
    "many optimizers": many,
    "all equal": lambda: outcome(sweep("a", noise=0.0), sweep("b", noise=0.0)),
    "halving": halved,
    "digits": digits,
}


@functools.cache
def page_of(name):
    """The page of an edge case, cached."""
    return page(EDGES[name]())


@functools.cache
def pictures_of(name):
    """The plots of an edge case, cached."""
    return pictures(EDGES[name]())
