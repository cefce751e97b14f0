"""An optimizer is data: it can be printed, compared, copied and passed to `jit`."""

import copy
import json
import pickle
import re

import equinox as eqx
import equinox.internal as eqxi
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steepest
from steepest.core import OPERANDS

from ..zoo import fed, few_params, gradients, over, PARTS, Row, ZOO

ROWS = [*ZOO, *PARTS]


def _make(row: Row, **hyper):
    """The transformation itself, without the wrappers of a test."""
    return row.maker(**{**row.hyper, **row.options, **hyper})


@over([row for row in ROWS if not row.maker.__name__.startswith("_")])
def test_it_prints_its_numbers(row: Row):
    text = repr(_make(row))
    assert text.startswith(f"{row.maker.__name__}(")
    for name, x in row.hyper.items():
        assert f"{name}={x!r}" in text


@over(ROWS)
def test_it_is_equal_to_its_twin_and_to_its_copies(row: Row):
    tx, twin = _make(row), _make(row)
    assert tx == twin
    assert hash(tx) == hash(twin)
    assert copy.deepcopy(tx) == tx
    assert jax.tree.map(lambda x: x, tx) == tx
    assert pickle.loads(pickle.dumps(tx)) == tx


@over(ROWS)
def test_other_numbers_make_another(row: Row):
    tx = _make(row)
    for name, x in row.hyper.items():
        if isinstance(x, float):
            assert _make(row, **{name: x * 0.75 or 0.0625}) != tx, name


@over(ROWS)
def test_it_goes_through_json(row: Row):
    tx = _make(row)
    try:
        config = steepest.to_config(tx)
    except TypeError as error:  # a mask or condition that is a local function
        assert "is the function _" in str(error)
        assert row.options or row.maker.__module__.startswith("tests.")
        return
    text = json.dumps(config, allow_nan=False)
    again = steepest.from_config(json.loads(text))
    assert again == tx
    p = few_params()
    assert jax.tree.structure(again.init(p)) == jax.tree.structure(tx.init(p))


@over([row for row in ROWS if row.hyper])
def test_as_an_argument_of_jit_it_is_traced_once(row: Row):
    """Arrays among the hyperparameters are arguments: one program for all values."""
    p, traces = few_params(), []

    @jax.jit
    def step(tx, p):
        traces.append(1)
        tx = fed(tx, row.wants) if row.wants else tx
        return tx.update(gradients(p), tx.init(p), p)[0]

    arrays = {k: jnp.asarray(x) for k, x in row.hyper.items()}
    floats = {k for k, x in row.hyper.items() if isinstance(x, float)}
    for factor in (1.0, 0.75):
        hyper = {k: x * factor if k in floats else x for k, x in arrays.items()}
        u = step(_make(row, **hyper), p)
        assert all(jnp.isfinite(x).all() for x in jax.tree.leaves(u))
    assert len(traces) == 1


RATES = [row for row in ZOO if OPERANDS & row.hyper.keys()]


@over(RATES)
def test_outside_jit_one_compile_serves_every_learning_rate(row: Row, compiles):
    p = few_params()
    names = [k for k in OPERANDS & row.hyper.keys() if isinstance(row.hyper[k], float)]

    def step(factor):
        tx = _make(row, **{k: row.hyper[k] * factor for k in names})
        tx = fed(tx, row.wants) if row.wants else tx
        state = tx.init(p)
        for t in range(2):
            u, state = tx.update(gradients(p, t), state, p)
        return u

    step(1.0)
    with compiles(0):
        step(0.75)


def test_one_compile_for_a_hundred_rates_decays_and_norms(compiles):
    p = few_params()

    def step(k):
        tx = steepest.chain(
            steepest.clip_by_global_norm(1.0 + k),
            steepest.adamw(1e-3 * (k + 1), weight_decay=1e-2 * (k + 1)),
        )
        return tx.update(gradients(p), tx.init(p), p)

    step(0)
    with compiles(0):
        for k in range(1, 101):
            step(k)


def test_one_trace_for_a_hundred_rates_as_an_argument():
    p, traces = few_params(), []

    @jax.jit
    def step(tx, p):
        traces.append(1)
        return tx.update(gradients(p), tx.init(p), p)[0]

    for k in range(100):
        step(steepest.adamw(jnp.array(1e-3 * (k + 1))), p)
    assert len(traces) == 1


def test_a_hundred_adams_take_little_memory():
    """One program is cached, not one of 2 MB for each of them."""

    def resident():
        with open("/proc/self/status") as status:
            return int(re.search(r"VmRSS:\s+(\d+)", status.read())[1]) / 1024

    q = {"w": jnp.ones((3, 4)), "b": jnp.ones(4)}

    def run(rates):
        for rate in rates:
            tx = steepest.adam(rate)
            tx.update(q, tx.init(q), q)

    run([1e-4, 2e-4])
    before = resident()
    run(1e-4 * (k + 1) for k in range(100))
    assert resident() - before < 25  # MB


def test_vmap_over_optimizers():
    rates, p = jnp.array([0.1, 0.2, 0.4]), few_params()
    step = lambda tx: tx.update(gradients(p), tx.init(p), p)[0]
    many = jax.vmap(step)(jax.vmap(steepest.adamw)(rates))
    for k, rate in enumerate(rates):
        one = step(steepest.adamw(rate))
        same = lambda x, y, k=k: np.testing.assert_allclose(x[k], y, rtol=1e-6)
        jax.tree.map(same, many, one)


def test_grad_with_respect_to_an_optimizer():
    p, g = jnp.array([1.0, 2.0]), jnp.array([3.0, 4.0])
    length = lambda tx: jnp.sum(tx.update(g, tx.init(p), p)[0])
    slope = jax.grad(length)(steepest.sgd(jnp.array(0.5)))
    assert isinstance(slope, steepest.Transformation)
    assert slope.call.arguments["learning_rate"] == -7.0


def test_equinox_compiles_once_for_other_arrays():
    p, traces = few_params(), []

    @eqx.filter_jit
    def step(tx, p):
        traces.append(1)
        return tx.update(gradients(p), tx.init(p), p)[0]

    for rate in (1e-3, 1e-2, 1e-1):
        u = step(steepest.adamw(jnp.array(rate)), p)
        v = step(eqxi.closure_to_pytree(steepest.adamw(jnp.array(rate))), p)
        jax.tree.map(np.testing.assert_array_equal, u, v)
    assert len(traces) == 1


def test_the_two_functions_alone_are_pytrees_too():
    """Some libraries store `tx.update` instead of the pair."""
    p, traces = few_params(), []

    @jax.jit
    def step(init, update, p):
        traces.append(1)
        return update(gradients(p), init(p), p)[0]

    for rate in (0.1, 0.2):
        step(*steepest.adamw(jnp.array(rate)), p)
    assert len(traces) == 1


def _rates():
    warmup = steepest.warmup_cosine_decay_schedule(0.0, 1.0, 2, 10)
    strong = steepest.cosine_decay_schedule(jnp.float32(0.1), 10)
    return [0.1, jnp.asarray(0.1), jnp.float32(0.1), warmup, strong]


def _everywhere(tx, p):
    """Use it in a condition and a loop, then in `jit`, then outside."""

    def step(state):
        return tx.update(p, state, p)[1]

    @jax.jit
    def all_steps(state):
        state = jax.lax.cond(jnp.all(p > 0), step, step, state)
        state, _ = jax.lax.scan(lambda s, _: (step(s), None), state, length=2)
        return step(state)

    return step(all_steps(tx.init(p)))


@pytest.mark.parametrize("rate", range(5))
@pytest.mark.parametrize("make", ["adam", "fromage", "sgd", "noisy_sgd", "lamb"])
def test_what_is_made_in_one_trace_is_not_used_in_another(make, rate):
    """Copies make their functions when they are used first, which may be in a loop."""
    p, rates = jnp.ones(2), _rates()
    more = {"key": 0} if make == "noisy_sgd" else {}
    tx = getattr(steepest, make)(rates[rate], **more)
    for copied in (copy.deepcopy(tx), pickle.loads(pickle.dumps(tx)), tx):
        _everywhere(copied, p)
    jax.jit(lambda tx: _everywhere(tx, p))(copy.deepcopy(tx))
    outer = steepest.contrib.sam(steepest.sgd(0.1), copy.deepcopy(tx))
    outer.update(p, outer.init(p), p)


def test_what_is_made_inside_jit_can_be_used_outside():
    made = []

    @jax.jit
    def init(p):
        made.append(steepest.adam(_rates()[3]))
        made.append(steepest.noisy_sgd(0.1, key=0))
        made.append(steepest.sgd(steepest.sgdr_schedule([_CYCLE, _CYCLE])))
        return [tx.init(p) for tx in made]

    p = jnp.ones(2)
    for tx, state in zip(made, init(p), strict=True):
        tx.update(p, state, p)


_CYCLE = {"init_value": 0.0, "peak_value": 1.0, "warmup_steps": 2, "decay_steps": 10}
