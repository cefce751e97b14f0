"""All runs of an optimizer in one program equal single runs."""

from dataclasses import replace
from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steepest
from steepest.race._model import Model
from steepest.race._plan import RunPlan
from steepest.race._program import Program
from steepest.race._sweep import evaluations
from steepest.race.entrants._expressions import entrant

from .small import LINE

PLAN = RunPlan((1e-3, 1e-2, 1e-1), (0, 7), 12)
CLOSE = {"rtol": 1e-5, "atol": 1e-6}


def _program(text, plan=PLAN, problem=LINE):
    return Program(Model(problem, entrant(text, steps=plan.steps)), plan)


def _sweep(text, plan=PLAN, problem=LINE):
    *_, last = evaluations(_program(text, plan, problem))
    return last.sweep


@pytest.fixture(scope="module")
def adam():
    return _sweep("adam")


def test_each_run_is_the_one_of_its_rate_and_seed(adam):
    """Computed by hand for one of them: same start, same batches, same steps."""
    start, order = jax.random.split(jax.random.key(7))
    tx, params = steepest.adam(1e-2), LINE.init(start)
    params = jax.tree.map(lambda x: x.astype(x.dtype), params)
    state, step = tx.init(params), steepest.make_train_step(LINE.loss, tx)
    values = []
    for t in range(12):
        batch = LINE.batches(jax.random.fold_in(order, t), jnp.asarray(LINE.data))
        params, state, value = step(params, state, batch)
        values.append(float(value))
    np.testing.assert_allclose(adam.loss[1, 1], [values[0], *values], **CLOSE)
    np.testing.assert_allclose(
        adam.metric[1, 1, -1], LINE.metric(params, LINE.data), **CLOSE
    )


def test_losses_are_means_between_evaluations(adam):
    coarse = RunPlan(PLAN.rates, PLAN.seeds, 50)  # evaluated after every second step
    assert coarse.evaluation_steps[:3] == (0, 2, 4)
    result = _sweep("adam", coarse)
    first_two = adam.loss[..., 1:3].mean(axis=-1)
    np.testing.assert_allclose(result.loss[..., 1], first_two, **CLOSE)
    np.testing.assert_allclose(result.loss[..., 0], adam.loss[..., 0], **CLOSE)
    np.testing.assert_allclose(result.metric[..., 1], adam.metric[..., 2], **CLOSE)


@pytest.mark.parametrize("steps", [1, 39, 40, 41, 79, 1000])
def test_evaluations_begin_at_the_start_and_end_at_the_end(steps):
    at = RunPlan((0.1,), (0,), steps).evaluation_steps
    assert at[0] == 0 and at[-1] == steps and len(at) <= 41
    assert all(a < b for a, b in pairwise(at))


def test_it_is_compiled_once():
    """One program per optimizer covers init, steps and any number of evaluations."""
    heard = []
    jax.monitoring.register_event_duration_secs_listener(
        lambda event, _, **rest: heard.append((event, rest.get("fun_name")))
    )
    _sweep("rmsprop", RunPlan((1e-2, 1e-1), (0, 1), 47))  # the last interval is shorter
    compiled = [name for event, name in heard if event.endswith("compile_duration")]
    assert len(compiled) == 1, compiled


def test_one_device_and_eight_agree(adam, monkeypatch):
    """Three rates are padded to eight devices; the padding is not shown."""
    monkeypatch.setattr(jax, "local_devices", lambda: jax.devices()[:1])
    alone = _sweep("adam")
    assert alone.loss.shape == adam.loss.shape == (3, 2, 13)
    np.testing.assert_allclose(alone.loss, adam.loss, **CLOSE)


@pytest.mark.parametrize("text", ["lookahead(adam)", "schedule_free_sgd", "noisy_sgd"])
def test_runs_go_on_where_they_were_saved(text):
    """To the last bit, including keys and slow params."""
    program = _program(text, RunPlan((1e-1,), (3,), 8))
    *_, whole = evaluations(program)
    half = evaluations(program)
    begun = [next(half) for _ in range(4)][-1].begun()
    *_, last = evaluations(program, begun)
    assert last.sweep.steps == whole.sweep.steps
    np.testing.assert_array_equal(last.sweep.loss, whole.sweep.loss)
    np.testing.assert_array_equal(last.sweep.metric, whole.sweep.metric)


def test_a_run_that_diverges_is_seen():
    sweep = _sweep("sgd", RunPlan((1e-3, 1e30), (0, 1), 12))
    np.testing.assert_array_equal(sweep.diverged, [[False, False], [True, True]])


@pytest.mark.parametrize(
    "text, bytes_", [("sgd", 0), ("adam", 8), ("lookahead(sgd)", 4), ("lion", 4)]
)
def test_bytes_of_state(text, bytes_):
    """A count takes four bytes, and there are at most two: less than five params."""
    assert 0 <= _program(text).traced.bytes_per_param - bytes_ < 2


def test_a_local_rule_is_stepped_by_the_decoupled_rules():
    """The adjustments are subtracted, not a gradient."""
    problem = steepest.race.Problem(
        init=lambda key: [jnp.zeros(2)],
        loss=lambda params, batch: jnp.sum(params[0]),
        adjust=lambda params, batch: [jnp.array([1.0, -2.0])],
        metric=lambda params, data: params[0][1],
    )
    sweep = _sweep("sgd", RunPlan((0.5,), (0,), 3), problem)
    np.testing.assert_allclose(sweep.metric[0, 0], [0.0, 1.0, 2.0, 3.0])


def _weight_of(problem):
    """A loss that steadily increases one weight, and a metric that returns it."""
    return replace(
        problem,
        init=lambda key: {"w": jnp.zeros(())},
        loss=lambda params, batch: -params["w"],
        metric=lambda params, data: params["w"],
    )


def test_lookahead_is_measured_at_its_slow_params():
    """They do not move until the fast ones have made two steps, then go half way."""
    sweep = _sweep("lookahead(sgd, 2, 0.5)", RunPlan((1.0,), (0,), 4), _weight_of(LINE))
    np.testing.assert_allclose(sweep.metric[0, 0], [0.0, 0.0, 1.0, 1.0, 2.0])


def test_schedule_free_is_measured_at_its_mean():
    """Not where the gradient is taken, between the mean and `z`."""
    plan, text = RunPlan((1.0,), (0,), 2), "schedule_free_sgd(b1=0.5)"
    sweep = _sweep(text, plan, _weight_of(LINE))
    # z is 1 and 2 after the steps; x is the mean of them so far.
    np.testing.assert_allclose(sweep.metric[0, 0], [0.0, 1.0, 1.5])
