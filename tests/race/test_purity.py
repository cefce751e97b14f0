"""Random numbers from Python are frozen by compilation: detected, with an error."""

import json
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.race import Problem, race
from steepest.race._purity import draws, randomness
from steepest.race.problems import known, load
from steepest.race.report import notes, results
from steepest.race.terminal._progress import Quiet
from steepest.race.terminal._stop import Stop

from .small import LINE, ROWS

ITERATOR = iter([ROWS[k : k + 8] for k in range(40)])
RANDOM = np.random.default_rng(0)
SOME = jax.jit(lambda data: data[RANDOM.integers(0, 50, 8)])


def _slice(key, data):
    start = int(RANDOM.integers(0, 40))
    return data[start : start + 8]


FROZEN = {
    "np.random": lambda key, data: data[np.random.randint(0, 50, 8)],
    "a generator": lambda key, data: data[RANDOM.integers(0, 50, 8)],
    "an iterator": lambda key, data: next(ITERATOR),
    "a slice": _slice,
    "jitted": jax.jit(lambda key, data: data[np.random.randint(0, 50, 8)]),
    "a jitted part": lambda key, data: SOME(data) + jax.random.normal(key, (8, 4)),
    "a number": lambda key, data: LINE.batches(key, data) * np.random.normal(),
}


@pytest.mark.parametrize("batches", FROZEN.values(), ids=FROZEN)
def test_batches_that_python_draws_are_refused(batches):
    with pytest.raises(
        ValueError, match=r"^race: `batches` of the problem 'line'.*key"
    ):
        race(replace(LINE, batches=batches))


@pytest.mark.parametrize(
    "name, function",
    [
        ("init", lambda key: {"w": jnp.asarray(np.random.normal(size=4), "float32")}),
        ("loss", lambda p, batch: jnp.sum(p["w"]) * np.random.normal()),
        ("metric", lambda p, data: jnp.sum(data[np.random.randint(0, 50, 3)])),
        ("adjust", lambda p, b: jax.tree.map(lambda x: x * np.random.normal(), p)),
    ],
)
def test_so_are_other_functions(name, function):
    with pytest.raises(ValueError, match=f"^race: `{name}` of the problem 'line'"):
        randomness(replace(LINE, **{name: function}))


CONSTANT = {
    "the first rows": lambda key, data: data[:8],
    "a seed of its own": lambda key, data: data[
        jax.random.randint(jax.random.key(3), (8,), 0, 50)
    ],
    "a key in vain": lambda key, data: (jax.random.split(key), data)[1],
}


@pytest.mark.parametrize("batches", CONSTANT.values(), ids=CONSTANT)
def test_constant_batches_are_noted(batches):
    problem = replace(LINE, batches=batches)
    (message,) = randomness(problem).remarks
    assert message == "`batches` does not use its key: every step sees the same batch."


def test_a_key_that_is_used_in_a_loop_is_used():
    def batches(key, data):
        draw = lambda key, _: (jax.random.split(key)[0], LINE.batches(key, data))
        return jax.lax.scan(draw, key, None, length=2)[1][1]

    assert not randomness(replace(LINE, batches=batches)).remarks


def _beside(wrap):
    """A result that depends on the key, and one that does not."""

    def both(key, x):
        draw = lambda key, x: (jax.random.split(key)[0], 2 * x)
        return wrap(draw)(key, x)

    return both


def _looped(draw):
    step = lambda pair, _: (draw(*pair), None)
    return lambda key, x: jax.lax.scan(step, (key, x), None, length=3)[0]


def _mixing(draw):
    """The key reaches the value in the second turn of the loop."""

    def step(carry, _):
        key, last, x = carry
        key, x = draw(key, x)
        return (key, jax.random.uniform(key), x + last), None

    def run(key, x):
        carry = key, jnp.zeros(()), x
        (key, _, x), _ = jax.lax.scan(step, carry, None, length=3)
        return key, x

    return run


@pytest.mark.parametrize(
    ("wrap", "mixes"),
    [
        (lambda draw: draw, False),
        (jax.jit, False),
        (jax.checkpoint, False),
        (lambda draw: jax.jit(_looped(jax.checkpoint(draw))), False),
        (_looped, False),
        (_mixing, True),
        (lambda draw: jax.jit(_mixing(draw)), True),
    ],
)
def test_a_key_beside_a_value_is_not_in_it(wrap, mixes):
    """A loss under `jit` returned its value together with the keys of its dropout."""
    both, args = _beside(wrap), (jax.random.key(0), jnp.float32(1))
    assert draws(lambda *args: both(*args)[1], *args) == mixes
    assert draws(lambda *args: jax.random.key_data(both(*args)[0]), *args)


def test_all_of_the_data_is_the_batch_where_none_is_drawn():
    whole = Problem(
        init=lambda key: jax.random.normal(key, (4,)),
        loss=lambda p, batch: jnp.mean((batch @ p) ** 2),
        data=ROWS,
    )
    assert not randomness(whole).remarks
    outcome = race(whole, ["sgd"], learning_rates=[0.1], seeds=1, steps=1)
    params = whole.init(jax.random.split(jax.random.key(0))[0])
    first = float(outcome.sweeps[0].loss[0, 0, 0])
    assert first == pytest.approx(float(whole.loss(params, ROWS)), rel=1e-5)


@pytest.mark.parametrize("name", known())
def test_embedded_problems_are_pure_and_random(name):
    result = randomness(load(name))
    assert result.seeds_differ and not result.remarks


def test_seeds_that_do_not_differ_are_one(capsys):
    """Three equal runs would count as three independent ones."""
    fixed = Problem(init=lambda key: jnp.ones(3), loss=lambda p, _: p @ p)
    outcome = race(fixed, ["sgd", "adam"], learning_rates=[0.1], seeds=3, steps=2)
    assert [sweep.seeds for sweep in outcome.sweeps] == [(0,), (0,)]
    (message,) = outcome.remarks
    assert "all seeds give the same run. Only one seed was raced" in message
    assert (
        message in notes(outcome) and message in json.loads(results(outcome))["remarks"]
    )
    again = race(
        fixed, ["sgd"], learning_rates=[0.1], seeds=3, steps=2, watch=Quiet(Stop())
    )
    assert again.remarks == outcome.remarks
    assert capsys.readouterr().err == f"note: {message}\n"


def test_a_constant_start_is_noted():
    result = randomness(replace(LINE, init=lambda key: {"w": jnp.ones(4), "b": 1.0}))
    assert result.remarks == (
        "`init` does not use its key: all seeds start from the same params.",
    )
