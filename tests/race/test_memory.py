"""Runs that do not fit in memory together take turns."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.race import _memory, _program, Problem, race
from steepest.race._model import Model
from steepest.race._parts import RunParts
from steepest.race._plan import RunPlan
from steepest.race._program import Program
from steepest.race._sweep import evaluations
from steepest.race.entrants import entrant
from steepest.race.report import notes

from .small import LINE

PLAN = RunPlan((1e-3, 1e-2, 1e-1), (0, 7, 9), 6)
WIDE = Problem(  # most of its memory is needed during a step
    init=lambda key: jax.random.normal(key, (8, 8)),
    loss=lambda p, batch: jnp.mean(jnp.tanh(batch @ p) ** 2),
    batches=lambda key, _: jax.random.normal(key, (20_000, 8)),
    metric=lambda p, _: jnp.sum(p),
)


def _program_of(problem=LINE, plan=PLAN, **how):
    return Program(Model(problem, entrant("adam", steps=plan.steps)), plan, **how)


def _last(program, begun=None):
    *_, last = evaluations(program, begun)
    return last


@pytest.fixture(scope="module")
def whole():
    return _last(_program_of()).sweep


@pytest.mark.parametrize("seeds", [1, 2, 3, 5])
@pytest.mark.parametrize("rates", [1, 3, 8])
@pytest.mark.parametrize("devices", [1, 2, 8])
def test_every_run_is_in_a_part(seeds, rates, devices):
    for most in range(1, seeds * rates + 2):
        result = RunParts.of(seeds, rates, most, devices)
        at = {(s, r) for p in result.parts for s in p.seeds for r in p.rates}
        assert at == {(s, r) for s in range(seeds) for r in range(rates)}
        shapes = {(len(p.seeds), len(p.rates)) for p in result.parts}
        ((_, together),) = shapes  # one program serves them all
        assert together % result.devices == 0
        assert result.at_once <= most or len(result.parts) == 1


@pytest.mark.parametrize("at_once", [1, 2, 3, 8])
def test_split_runs_end_like_joint_runs(whole, at_once):
    """Up to rounding: XLA merges several small products into one."""
    result = _last(_program_of(at_once=at_once)).sweep
    assert result.at_once <= at_once and whole.at_once is None
    np.testing.assert_allclose(result.loss, whole.loss, rtol=1e-6)
    np.testing.assert_allclose(result.metric, whole.metric, rtol=1e-6)


def test_split_by_seeds_no_bit_is_lost():
    """Nothing is summed over seeds, so the arithmetic is the same."""
    problem = replace(LINE, metric=lambda p, data: jnp.sum(p["w"] ** 2))
    result = [_last(_program_of(problem, at_once=n)).sweep for n in (9, 3)]
    np.testing.assert_array_equal(result[0].loss, result[1].loss)
    np.testing.assert_array_equal(result[0].metric, result[1].metric)


def test_runs_saved_together_can_resume_split(whole):
    """Nothing saved depends on the amount of memory or the number of devices."""
    half = evaluations(_program_of())
    begun = [next(half) for _ in range(3)][-1].begun()
    apart = _program_of(at_once=2)
    for x, y in zip(apart.save(apart.load(begun.saved)), begun.saved, strict=True):
        np.testing.assert_array_equal(x, y)
    result = _last(apart, begun).sweep
    np.testing.assert_allclose(result.metric, whole.metric, rtol=1e-6)


def test_split_runs_resume_split():
    """So the same race ends with the same numbers, with more or less memory."""
    half = evaluations(_program_of(at_once=2))
    begun = [next(half) for _ in range(3)][-1].begun()
    *_, rest = half
    result = _last(_program_of(), begun).sweep
    assert result.at_once == rest.sweep.at_once == 2
    np.testing.assert_array_equal(result.metric, rest.sweep.metric)


def test_a_little_memory_is_enough(monkeypatch):
    plan = RunPlan((0.1,), tuple(range(6)), 2)
    whole = _program_of(WIDE, plan)
    needs = whole.compiled.memory_analysis().temp_size_in_bytes
    assert whole.fitted() is whole
    monkeypatch.setattr(_memory, "available", lambda device: needs * 0.7)
    result = _last(whole).sweep
    assert result.at_once == 3
    monkeypatch.setattr(_memory, "available", lambda device: needs * 0.1)
    with pytest.raises(_memory.OutOfMemory, match=r"one run needs about \d+ MB"):
        _last(whole)
    assert _last(_program_of(WIDE, plan, at_once=1)).sweep.at_once == 1


def test_on_an_accelerator_waiting_runs_are_on_the_host(monkeypatch):
    """Device memory is what counts, and only the runs that take their turn use it."""
    program = _program_of(WIDE, RunPlan((0.1,), tuple(range(6)), 2))
    whole = _last(program).sweep
    need = program.compiled.memory_analysis().temp_size_in_bytes

    class Accelerator:
        platform = "gpu"

        def memory_stats(self):
            return {"bytes_limit": need, "bytes_in_use": need // 4}

    device = property(lambda self: [Accelerator()])
    monkeypatch.setattr(Program, "devices", device)
    last = _last(program)
    assert last.sweep.at_once == 3
    assert all(isinstance(x, np.ndarray) for part in last.runs for x in part)
    np.testing.assert_allclose(last.sweep.metric, whole.metric, rtol=1e-6)


def test_too_little_for_one_run_is_said_in_a_sentence(monkeypatch):
    monkeypatch.setattr(_memory, "available", lambda device: 10)
    outcome = race(LINE, ["sgd"], seeds=2)
    ((name, why),) = outcome.missing
    assert name == "sgd" and "6 runs keep" in why and "Use fewer" in why
    assert "\n" not in why


def test_memory_that_runs_out_splits_the_runs(monkeypatch):
    """An estimate may be wrong: half as many runs are tried."""
    go_on, tried = Program.go_on, []

    def out_of_memory(self, *args, **how):
        tried.append(self.at_once)
        if self.at_once > 3:
            raise RuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 9 bytes.")
        return go_on(self, *args, **how)

    monkeypatch.setattr(Program, "go_on", out_of_memory)
    outcome = race(LINE, ["adam"], learning_rates=[0.1, 0.2], seeds=4, steps=2)
    assert outcome.sweeps[0].at_once == 2 and tried[0] > 3
    assert "adam: 2 of 8 runs were in memory at a time." in notes(outcome)


def test_memory_that_runs_out_for_good_is_said(monkeypatch):
    def out_of_memory(self, *args, **how):
        raise MemoryError

    monkeypatch.setattr(_program.Program, "go_on", out_of_memory)
    outcome = race(LINE, ["adam"], learning_rates=[0.1], seeds=1, steps=2)
    ((_, why),) = outcome.missing
    assert why.startswith("out of memory with 1 runs at once. Use a smaller")


def test_at_once_is_a_count(as_users_do):
    with pytest.raises(ValueError, match="`at_once` is 0, expected a whole number"):
        race(LINE, at_once=0)


def test_an_optimizer_that_xla_cannot_run_is_named(monkeypatch):
    """The other optimizers still run."""
    go_on = Program.go_on

    def broken(self, *args, **how):
        if self.model.entrant.name == "adam":
            raise jax.errors.JaxRuntimeError("INTERNAL: something\nand more")
        return go_on(self, *args, **how)

    monkeypatch.setattr(Program, "go_on", broken)
    outcome = race(LINE, ["adam", "sgd"], learning_rates=[0.1], seeds=1, steps=1)
    assert outcome.missing == (("adam", "JaxRuntimeError: INTERNAL: something"),)
    assert [sweep.name for sweep in outcome.sweeps] == ["sgd"]


def test_other_errors_are_not_about_memory(monkeypatch):
    def broken(self, *args, **how):
        raise RuntimeError("something else")

    monkeypatch.setattr(Program, "go_on", broken)
    with pytest.raises(RuntimeError, match="something else"):
        race(replace(LINE, seeds=1), ["sgd"])
