"""Per-example gradients, against Optax and NumPy."""

import copy
import pickle

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import steepest
from steepest.experimental import aggregating

from ..oracles._calls import assert_same, loose

P = {"w": jnp.ones((3, 2)), "b": [jnp.zeros(2), None]}


def _batches(steps=4, size=5, axis=0, dtype=jnp.float32):
    """Gradients of `size` examples for each step."""
    for step in range(steps):
        keys = steepest.tree.split_key_like(jax.random.key(step), P)
        each = jax.tree.map(
            lambda k, p: jax.random.normal(k, (size, *p.shape)), keys, P
        )
        yield jax.tree.map(lambda g: jnp.moveaxis(g, 0, axis).astype(dtype), each)


def _run(tx, batches, params=P, **extra):
    update = jax.jit(tx.update)
    state, rows = tx.init(params), []
    for batch in batches:
        updates, state = update(batch, state, params, **extra)
        rows.append((updates, state))
    return rows


def _pieces(m):
    """The same expressions for both libraries."""
    a = m.experimental.aggregating
    return {
        "mean": a.average_per_element_updates(),
        "mean along the last": a.average_per_element_updates(-1),
        "accumulated means": a.accumulate_avg_updates(3),
        "nothing to accumulate": a.accumulate_avg_updates(1),
        "both": a.average_incrementally_updates(0, 2),
        "both, once": a.average_incrementally_updates(0, 1),
        "no elements": a.average_incrementally_updates(None, 2),
        "variation": a.get_per_element_mean_and_sum_sq_diff_grads(),
        "variation along the last": a.get_per_element_mean_and_sum_sq_diff_grads(-1),
        "variation of several": a.get_per_element_mean_and_sum_sq_diff_grads(0, 2),
        "optimizer": a.process(
            m.identity(), a.average_incrementally_updates(0, 2), m.adam(0.1)
        ),
        "at once": a.process(m.clip(0.5), a.average_per_element_updates(), m.sgd(0.1)),
        "metrics": a.add_mean_variance_to_opt(m.adam(0.1)),
        "metrics of several": a.add_mean_variance_to_opt(m.adam(0.1), 0.5, 0, 2),
        "metrics without a memory": a.add_mean_variance_to_opt(m.sgd(0.1), 0.0),
    }


@pytest.mark.parametrize("name", _pieces(steepest))
def test_same_as_optax(name):
    axis = -1 if "last" in name else 0
    whole = name in ("accumulated means", "nothing to accumulate", "no elements")
    batches = list(_batches(axis=axis))
    if whole:
        batches = jax.tree.map(lambda x: x.mean(0), batches)
    ours = _run(_pieces(steepest)[name], batches)
    with loose():
        theirs = _run(_pieces(optax)[name], batches)
    assert_same(ours, theirs, atol=1e-6)
    assert str(jax.tree.structure(ours)) == str(jax.tree.structure(theirs))


@pytest.mark.parametrize("name", ["metrics", "metrics of several"])
def test_what_is_read_is_the_same(name):
    ours = _run(_pieces(steepest)[name], _batches())[-1][1]
    with loose():
        theirs = _run(_pieces(optax)[name], _batches())[-1][1]
        want = optax.experimental.aggregating.get_unbiased_mean_and_variance_ema(theirs)
    assert_same(aggregating.get_unbiased_mean_and_variance_ema(ours), want, atol=1e-6)


def test_variance_is_that_of_numpy():
    """Over two batches, one after the other."""
    tx = aggregating.get_per_element_mean_and_sum_sq_diff_grads(0, 2)
    batches = list(_batches(2))
    (_, found), _ = _run(tx, batches)[-1]
    both = np.concatenate([batch["w"] for batch in batches])
    assert found["sample_size"] == len(both)
    variance = found["sum_sq_diff_grads"]["w"] / (len(both) - 1)
    np.testing.assert_allclose(variance, both.var(0, ddof=1), rtol=1e-5)


def test_several_axes_are_one_batch():
    g = jnp.arange(24.0).reshape(2, 3, 4)
    tx = aggregating.average_per_element_updates([0, 1])
    np.testing.assert_allclose(tx.update(g, tx.init(g[0, 0]))[0], g.mean((0, 1)))
    assert aggregating.get_batch_size_from_per_elt_updates(g, (0, 1)) == 6


def test_a_complex_variance_is_real():
    """The mean of |g - m|^2, where Optax takes (g - m)^2."""
    g = jnp.array([[1 + 1j], [1 - 1j]])
    tx = aggregating.get_per_element_mean_and_sum_sq_diff_grads()
    (mean, found), _ = tx.update(g, tx.init(g[0]))
    assert mean[0] == 1
    assert found["sum_sq_diff_grads"][0] == 2


@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float16])
def test_half_precision_keeps_its_types(dtype):
    p = jax.tree.map(lambda x: x.astype(dtype), P)
    tx = aggregating.add_mean_variance_to_opt(steepest.adam(0.1), 0.9, 0, 2)
    first, second = _run(tx, _batches(2, dtype=dtype), p)
    types = lambda x: jax.tree.map(lambda x: (x.shape, x.dtype), x)
    assert types(first) == types(second)
    assert types(second[1]) == types(tx.init(p))
    assert all(bool(jnp.isfinite(x).all()) for x in jax.tree.leaves(second[0]))


def test_the_state_waits_bit_for_bit():
    p = {"w": jnp.ones((3, 2)), "b": [jnp.zeros(2), None]}
    tx = _pieces(steepest)["optimizer"]
    updates, state = tx.update(next(_batches()), tx.init(p), p)
    assert all((x == 0).all() for x in jax.tree.leaves(updates))
    for x, y in zip(*map(jax.tree.leaves, (state[2], tx.init(p)[2])), strict=True):
        np.testing.assert_array_equal(x, y)


def test_an_aggregator_stays_one():
    mean = aggregating.average_per_element_updates()
    assert isinstance(mean, aggregating.Aggregator)
    assert isinstance(mean, optax.experimental.aggregating.Aggregator)
    sgd = steepest.sgd(0.1)
    for tx in (
        aggregating.process(sgd, mean, sgd),
        aggregating.get_per_element_mean_and_sum_sq_diff_grads(),
        aggregating.average_incrementally_updates(0, 2),
        aggregating.add_mean_variance_to_opt(sgd),
    ):
        for same in (tx, copy.copy(tx), pickle.loads(pickle.dumps(tx))):
            assert isinstance(same, aggregating.Aggregator)
            assert same == tx and repr(same) == repr(tx)
        assert isinstance(jax.tree.map(lambda x: x, tx), aggregating.Aggregator)
    whole = aggregating.process(sgd, steepest.identity(), sgd)
    assert isinstance(whole, steepest.GradientTransformationExtraArgs)
    assert not isinstance(whole, aggregating.Aggregator)


def test_extra_arguments_reach_all():
    tx = aggregating.process(
        steepest.identity(),
        aggregating.average_per_element_updates(),
        steepest.contrib.reduce_on_plateau(),
    )
    _run(tx, _batches(2), value=jnp.array(1.0))


def test_outside_jit():
    tx = _pieces(steepest)["metrics of several"]
    state = tx.init(P)
    for batch, row in zip(_batches(2), _run(tx, _batches(2)), strict=True):
        updates, state = tx.update(batch, state, P)
        assert_same((updates, state), row, atol=1e-6)


def test_what_optax_aggregates():
    """An aggregator of Optax between two of ours."""
    mean = optax.experimental.aggregating.average_per_element_updates()
    tx = aggregating.process(steepest.identity(), mean, steepest.sgd(0.1))
    assert isinstance(tx, aggregating.Aggregator)
    want = _run(_pieces(steepest)["at once"], _batches(1))[0][0]
    tx = aggregating.process(steepest.clip(0.5), mean, steepest.sgd(0.1))
    assert_same(_run(tx, _batches(1))[0][0], want)
