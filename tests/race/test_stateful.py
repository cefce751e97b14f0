"""Problems with model state: statistics and keys, carried from step to step."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steepest
from steepest.race import find_lr, race, Watch
from steepest.race._check import checked
from steepest.race._fingerprint import race_fingerprint
from steepest.race._hoist import size
from steepest.race._model import _loss_key, Model
from steepest.race._plan import RunPlan
from steepest.race._program import Program
from steepest.race._purity import randomness
from steepest.race._settings import settings_of
from steepest.race._sweep import evaluations
from steepest.race.entrants import entrant
from steepest.race.terminal import main

from .small import CENTRED, LINE

PLAN = RunPlan((1e-2, 1e-1), (0, 7), 6)


def _program(text="sgd", problem=CENTRED, plan=PLAN, **how):
    return Program(Model(problem, entrant(text, steps=plan.steps)), plan, **how)


def _sweep(program, begun=None):
    *_, last = evaluations(program, begun)
    return last.sweep


@pytest.fixture(scope="module")
def program():
    return _program()


@pytest.fixture(scope="module")
def sweep(program):
    return _sweep(program)


def test_each_run_carries_its_own_state(sweep):
    """Computed by hand for one of them."""
    start, order = jax.random.split(jax.random.key(7))
    params, state = CENTRED.init(start)
    slope = jax.jit(jax.value_and_grad(CENTRED.loss, has_aux=True))
    values = []
    for t in range(6):
        batch = CENTRED.batches(jax.random.fold_in(order, t), jnp.asarray(CENTRED.data))
        (value, state), g = slope(params, state, batch, _loss_key(7, t))
        params = jax.tree.map(lambda p, g: p - 0.1 * g, params, g)
        values.append(float(value))
    np.testing.assert_allclose(sweep.loss[1, 1], [values[0], *values], rtol=1e-5)
    metric = CENTRED.metric(params, state, None)
    np.testing.assert_allclose(sweep.metric[1, 1, -1], metric, rtol=1e-5)
    assert state["count"] == 6


def test_keys_depend_on_the_seed_and_the_step():
    keys = [jax.random.key_data(_loss_key(*x)) for x in [(0, 0), (0, 1), (1, 0)]]
    assert len({tuple(np.asarray(key).tolist()) for key in keys}) == 3


def test_runs_resume_with_their_state(program, sweep):
    half = evaluations(program)
    begun = [next(half) for _ in range(3)][-1].begun()
    result = _sweep(program, begun)
    np.testing.assert_array_equal(result.loss, sweep.loss)
    np.testing.assert_array_equal(result.metric, sweep.metric)


class _StopsAfterTwo(Watch):
    evaluated = 0

    def evaluates(self, sweep):
        self.evaluated += 1

    def stopped(self):
        return self.evaluated >= 2


def test_a_race_resumes_with_its_state(sweep, tmp_path):
    how = {"learning_rates": PLAN.rates, "seeds": PLAN.seeds, "steps": PLAN.steps}
    half = race(CENTRED, ["sgd"], folder=tmp_path, watch=_StopsAfterTwo(), **how)
    assert half.sweeps[0].steps == (0, 1, 2)
    rest = race(CENTRED, ["sgd"], folder=tmp_path, resume=True, **how)
    np.testing.assert_array_equal(rest.sweeps[0].metric, sweep.metric)


def test_runs_that_take_turns_keep_their_state(sweep):
    result = _sweep(_program(at_once=1))
    assert result.at_once == 1
    np.testing.assert_allclose(result.metric, sweep.metric, rtol=1e-5)


def test_the_state_of_the_model_counts_in_memory_but_not_for_the_optimizer(program):
    """Four numbers and a count."""
    assert program.traced.bytes_per_run == 4 * 4 + 4 * 4 + 4
    assert program.traced.bytes_per_param == 0 and program.traced.parameters == 4
    assert sum(map(size, program.traced.one)) == program.traced.bytes_per_run


@pytest.mark.parametrize("text", ["lookahead(adam)", "lbfgs"])
def test_other_kinds_of_optimizers_carry_it(text):
    """Slow and fast params; a line search that evaluates the loss several times."""
    counting = replace(CENTRED, metric=lambda p, state, data: state["count"])
    result = _sweep(_program(text, counting, RunPlan((1e-2,), (0,), 3)))
    np.testing.assert_array_equal(result.metric[0, 0], [0, 1, 2, 3])


def test_without_a_metric_it_is_the_loss_on_another_batch():
    plain = replace(CENTRED, metric=None)
    run = Model(plain, entrant("sgd", steps=1)).start(0.1, 0)
    result = Model(plain, entrant("sgd", steps=1)).metric(0, run, plain.data)
    key = jax.random.fold_in(jax.random.split(jax.random.key(0))[1], 1 << 30)
    batch = plain.batches(key, jnp.asarray(plain.data))
    value, _ = plain.loss(run.params, run.model_state, batch, _loss_key(0, 1 << 30))
    np.testing.assert_allclose(result, value, rtol=1e-5)


def test_it_is_in_the_fingerprint_only_where_there_is_one():
    """So folders of plain problems stay readable."""
    known = lambda x: race_fingerprint(x, settings_of("", x, {}, {}))
    assert "`stateful`" not in known(LINE)
    assert known(CENTRED)["`stateful`"] == "True"


def test_seeds_may_differ_only_in_the_keys_of_the_loss():
    fixed = replace(
        CENTRED,
        init=lambda key: ({"w": jnp.ones(4)}, CENTRED.init(key)[1]),
        batches=lambda key, data, step: jax.lax.dynamic_slice_in_dim(data, step, 8),
    )
    result = randomness(fixed)
    assert result.seeds_differ and result.steps_differ and result.by_step
    assert not result.init and not result.batches
    assert result.remarks == (
        "`init` does not use its key: all seeds start from the same params.",
    )


def test_batches_may_take_the_step():
    """The metric adds up the steps that it saw, and the cycle is noted."""
    problem = steepest.race.Problem(
        init=lambda key: {"w": 0 * jax.random.normal(key, ())},
        loss=lambda params, batch: params["w"] * batch,
        batches=lambda key, data, step: jnp.asarray(step % 3, jnp.float32),
        metric=lambda params, data: params["w"],
        cycle=3,
        remarks=("Be careful.",),
    )
    outcome = race(problem, ["sgd"], learning_rates=[1.0], seeds=1, steps=5)
    result = outcome.sweeps[0].metric[0, 0]
    np.testing.assert_array_equal(result, [0, 0, -1, -3, -3, -4])
    assert outcome.remarks == (
        "There are 3 different batches for 5 steps: after step 3 they repeat in the "
        "same order.",
        "Be careful.",
    )


def test_a_range_test_adds_noise_where_there_is_none():
    """A stateful loss without keys, on full batches."""
    still = replace(
        CENTRED,
        batches=lambda key, data: data,
        loss=lambda p, state, batch, key: (jnp.sum(p["w"] ** 2), state),
    )
    result = find_lr(still, "sgd", steps=60, seeds=1)
    assert 0.3 < result.diverges < 5


def test_describe_shows_the_params_only(capsys):
    assert main(["describe", "sgd", "--problem", "tests.race.small:CENTRED"]) == 0
    shown = capsys.readouterr().out
    assert "16 B of params" in shown and "mean" not in shown


BAD = {
    "init": (
        {"init": lambda key: {"w": jnp.ones(4)}},
        r"`init`.*\{'w': float32\[4\]\}, expected a pair `\(params, state\)`",
    ),
    "loss": (
        {"loss": lambda p, state, batch, key: jnp.sum(p["w"])},
        r"`loss`.*float32\[\], expected a pair `\(value, state\)`",
    ),
    "arguments": (
        {"loss": lambda p, batch: jnp.sum(p["w"])},
        r"`loss`.*`loss\(params, state, batch, key\)`",
    ),
    "structure": (
        {"loss": lambda p, state, batch, key: (jnp.sum(p["w"]), state["mean"])},
        "`loss`.*another structure than that of `init`",
    ),
    "dtype": (
        {
            "loss": lambda p, state, batch, key: (
                jnp.sum(p["w"]),
                {**state, "mean": state["mean"].astype("bfloat16")},
            )
        },
        r"`loss`.*bfloat16\[4\] at \['mean'\], expected float32\[4\]",
    ),
    "metric": ({"metric": lambda p, data: 0.0}, r"`metric\(params, state, data\)`"),
    "adjust": ({"adjust": lambda p, batch: p}, "`adjust`.*only one of them"),
    "cycle": ({"cycle": 0}, "`cycle`.*whole number"),
    "remarks": ({"remarks": "no"}, "`remarks`.*a list of sentences"),
    "stateful": ({"stateful": 1}, "`stateful`.*True or False"),
}


@pytest.mark.parametrize("change, says", BAD.values(), ids=BAD)
def test_mismatches_are_errors(change, says, as_users_do):
    with pytest.raises((TypeError, ValueError), match=f"^race: .*{says}"):
        checked(replace(CENTRED, **change))
