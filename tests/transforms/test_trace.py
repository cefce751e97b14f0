"""Momentum."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import steepest

from ..unusual import ODD

g = {"w": jnp.array([1.0, -2.0]), "frozen": None}
nesterovs = pytest.mark.parametrize("nesterov", [False, True])


def _run(tx, grads):
    state, found = tx.init(grads[0]), []
    for x in grads:
        u, state = tx.update(x, state)
        found.append(u)
    return found, state


@jax.jit
def _of_constant(decay):
    found, _ = _run(steepest.trace(decay), [jnp.array(3.0)] * 8)
    return jnp.stack(found)


@settings(max_examples=20)
@given(st.floats(0, 0.99))
def test_a_constant_gradient_sums_to_a_geometric_series(decay):
    series = 3 * (1 - decay ** np.arange(1, 9)) / (1 - decay)
    np.testing.assert_allclose(_of_constant(decay), series, rtol=1e-5)


def test_nesterov_looks_one_step_ahead():
    """Its update is the plain one after the same gradient once more."""
    grads = [jnp.array([1.0]), jnp.array([-2.0]), jnp.array([5.0])]
    ahead, _ = _run(steepest.trace(0.9, nesterov=True), grads)
    for k in range(3):
        again, _ = _run(steepest.trace(0.9), [*grads[: k + 1], grads[k]])
        np.testing.assert_allclose(ahead[k], again[-1], rtol=1e-6)


def test_nesterov_remembers_the_same():
    grads = [jnp.array([1.0]), jnp.array([-2.0])]
    _, plain = _run(steepest.trace(0.9), grads)
    _, ahead = _run(steepest.trace(0.9, nesterov=True), grads)
    np.testing.assert_array_equal(plain.trace, ahead.trace)


@nesterovs
def test_without_decay_it_is_the_identity(nesterov):
    found, state = _run(steepest.trace(0.0, nesterov), [g, g])
    np.testing.assert_array_equal(found[-1]["w"], g["w"])
    np.testing.assert_array_equal(state.trace["w"], g["w"])


@nesterovs
def test_it_is_linear_in_the_gradients(nesterov):
    tx = steepest.trace(0.9, nesterov)
    keys = jax.random.split(jax.random.key(0), 6)
    xs = [jax.random.normal(key, (3,)) for key in keys]
    both, _ = _run(tx, [2 * x - y for x, y in zip(xs[:3], xs[3:], strict=True)])
    a, b = _run(tx, xs[:3])[0], _run(tx, xs[3:])[0]
    np.testing.assert_allclose(both[-1], 2 * a[-1] - b[-1], rtol=1e-4, atol=1e-5)


def test_the_state_is_named_and_begins_at_zero():
    state = steepest.trace(0.9).init(g)
    assert isinstance(state, steepest.TraceState)
    assert state._fields == ("trace",)
    assert state.trace["frozen"] is None
    np.testing.assert_array_equal(state.trace["w"], jnp.zeros(2))


@pytest.mark.parametrize("own", [jnp.float16, jnp.bfloat16, jnp.float32])
@pytest.mark.parametrize("kept", [None, jnp.bfloat16, jnp.float32])
def test_the_accumulator_has_a_dtype_of_its_own(own, kept):
    found, state = _run(
        steepest.trace(0.5, accumulator_dtype=kept), [jnp.ones(2, own)] * 3
    )
    assert state.trace.dtype == (kept or own)
    assert found[-1].dtype == own
    np.testing.assert_array_equal(found[-1], jnp.full(2, 1.75, own))


def test_a_wide_accumulator_hears_small_gradients():
    """In bfloat16, 256 + 1 is 256."""
    grads = [jnp.array([256.0], jnp.bfloat16)] + [jnp.ones(1, jnp.bfloat16)] * 4
    decay = 0.999755859375  # 1 - 2**-12: exact
    _, narrow = _run(steepest.trace(decay), grads)
    _, wide = _run(steepest.trace(decay, accumulator_dtype=jnp.float32), grads)
    assert narrow.trace == 256
    np.testing.assert_allclose(wide.trace, [259.75], atol=0.01)


def test_the_decay_may_be_mapped_over():
    def last(decay):
        return _run(steepest.trace(decay), [jnp.array(1.0)] * 2)[0][-1]

    np.testing.assert_allclose(jax.vmap(last)(jnp.array([0.0, 0.5])), [1, 1.5])


def test_without_forgetting_it_is_the_sum():
    found = _of_constant(1.0)
    np.testing.assert_allclose(found, 3.0 * np.arange(1, 9), rtol=1e-6)


@pytest.mark.parametrize("decay", [-0.1, 1.5, float("nan")])
def test_a_decay_that_is_no_share_is_refused(decay):
    said = rf"trace: decay is {decay}, .*number in \[0, 1\]"
    with pytest.raises(ODD, match=said):
        steepest.trace(decay)


def test_the_mean_of_integers_is_not_an_integer():
    """An integer would lose all fractions."""
    tx = steepest.trace(0.5)
    g = jnp.array([1, 2])
    state = tx.init(g)
    for _ in range(2):
        u, state = tx.update(g, state)
    assert u.tolist() == [1.5, 3.0]
    assert state.trace.tolist() == [1.5, 3.0]
