"""Multiplication by a number."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steepest

g = {"w": jnp.array([1.0, -2.0]), "b": jnp.array(4.0), "frozen": None}
dtypes = pytest.mark.parametrize("dtype", [jnp.float16, jnp.bfloat16, jnp.float32])


def _step(tx, updates=g):
    return tx.update(updates, tx.init(updates))[0]


def _assert_times(factor, updates):
    jax.tree.map(lambda u, x: np.testing.assert_allclose(u, factor * x), updates, g)


@pytest.mark.parametrize("step_size", [0, -0.5, 3, jnp.array(0.25), jnp.array(2)])
def test_scale_multiplies(step_size):
    _assert_times(float(step_size), _step(steepest.scale(step_size)))


def test_scale_remembers_nothing():
    tx = steepest.scale(0.5)
    _, state = tx.update(g, tx.init(g))
    assert tx.init(g) == state == steepest.EmptyState()


@dtypes
@pytest.mark.parametrize("step_size", [0.5, jnp.array(0.5)])
def test_scale_keeps_the_dtype(dtype, step_size):
    u = _step(steepest.scale(step_size), jnp.array([3.0], dtype))
    assert u.dtype == dtype
    assert u == 1.5


def test_scale_may_be_mapped_over():
    found = jax.vmap(lambda a: _step(steepest.scale(a))["w"])(jnp.array([1.0, 3.0]))
    np.testing.assert_array_equal(found, [[1, -2], [3, -6]])


def test_scale_has_64_bits():
    with jax.enable_x64(True):
        u = _step(steepest.scale(0.1), jnp.array([3.0]))
        assert u.dtype == jnp.float64
        np.testing.assert_allclose(u, [0.3], rtol=1e-15)


def test_nan_is_no_step_size():
    with pytest.raises(ValueError, match="scale: step_size is nan"):
        steepest.scale(float("nan"))


def test_a_schedule_is_read_before_the_count_moves():
    tx = steepest.scale_by_schedule(lambda t: 10.0 ** t.astype(float))
    state = tx.init(g)
    for t in range(3):
        assert state == steepest.ScaleByScheduleState(count=t)
        updates, state = tx.update(g, state)
        _assert_times(10.0**t, updates)
    assert state.count.dtype == jnp.int32


def test_a_constant_schedule_is_scale():
    tx = steepest.scale_by_schedule(steepest.constant_schedule(0.3))
    a, b = _step(tx), _step(steepest.scale(0.3))
    jax.tree.map(np.testing.assert_array_equal, a, b)


def test_a_schedule_may_answer_with_whole_numbers():
    """Strict promotion does not convert integers to floats."""
    tx = steepest.scale_by_schedule(lambda t: t + 2)
    _assert_times(2, _step(tx))


@dtypes
def test_a_schedule_does_not_change_the_dtype(dtype):
    schedule = steepest.cosine_decay_schedule(0.5, 10)
    u = _step(steepest.scale_by_schedule(schedule), jnp.array([3.0], dtype))
    assert u.dtype == dtype
    assert u == 1.5


def test_the_count_of_a_schedule_stops_at_the_top():
    tx = steepest.scale_by_schedule(lambda t: 1.0)
    top = steepest.ScaleByScheduleState(jnp.array(2**31 - 1))
    assert tx.update(g, top)[1] == top


def test_the_learning_rate_goes_down():
    _assert_times(-0.5, _step(steepest.scale_by_learning_rate(0.5)))


def test_the_learning_rate_goes_up_when_asked():
    _assert_times(0.5, _step(steepest.scale_by_learning_rate(0.5, flip_sign=False)))


@pytest.mark.parametrize("flip_sign, sign", [(True, -1), (False, 1)])
def test_a_learning_rate_may_be_a_schedule(flip_sign, sign):
    schedule = steepest.linear_schedule(1.0, 0.0, 4)
    tx = steepest.scale_by_learning_rate(schedule, flip_sign=flip_sign)
    state = tx.init(g)
    for rate in (1.0, 0.75, 0.5):
        updates, state = tx.update(g, state)
        _assert_times(sign * rate, updates)


def test_no_learning_rate_is_the_identity():
    """The gradient passes through unchanged, including its sign."""
    tx = steepest.scale_by_learning_rate(None)
    assert tx.update(g, tx.init(g))[0] is g


def test_a_negative_learning_rate_goes_up():
    x, up = jnp.array([2.0]), steepest.scale_by_learning_rate(-0.1)
    np.testing.assert_allclose(up.update(x, up.init(x))[0], 0.1 * x)


def test_an_infinite_learning_rate_is_refused():
    said = (
        "scale_by_learning_rate: learning_rate is inf, expected a number that is finite"
    )
    with pytest.raises(ValueError, match=said):
        steepest.scale_by_learning_rate(float("inf"))


def test_a_traced_learning_rate_is_not_checked():
    u = jax.jit(lambda a: _step(steepest.scale_by_learning_rate(a))["b"])(-0.5)
    assert u == 2
