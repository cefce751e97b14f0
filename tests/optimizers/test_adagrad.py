"""AdaGrad alone."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steepest

from ..unusual import ODD
from ._refused import NOT_AMOUNTS, refuses
from ._steps import steps

G = jnp.array([3.0, -0.5])


def test_steps_on_a_steady_gradient_fall_like_one_over_the_root_of_the_count():
    us, _ = steps(steepest.scale_by_rss(0.0, 0.0), [G] * 4)
    for t, u in enumerate(us, start=1):
        np.testing.assert_allclose(u, jnp.sign(G) / np.sqrt(t), rtol=1e-6)


def test_the_sum_begins_where_it_is_told():
    tx = steepest.scale_by_rss(0.25, eps=0.0)
    us, state = steps(tx, [G])
    np.testing.assert_allclose(state.sum_of_squares, 0.25 + G**2)
    np.testing.assert_allclose(us[0], G / jnp.sqrt(0.25 + G**2), rtol=1e-6)


def test_where_no_gradient_has_been_nothing_moves():
    us, _ = steps(steepest.scale_by_rss(0.0, 0.0), [0 * G, 0 * G])
    assert not np.any(us[1])


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_a_long_sum_is_kept_wide(dtype):
    """In bfloat16 a sum of ones stops at 256."""
    tx, g = steepest.adagrad(0.1), jnp.ones(2, dtype)
    state = tx.init(g)
    assert state[0].sum_of_squares.dtype == jnp.float32
    step = jax.jit(lambda state, _: (tx.update(g, state)[1], None))
    state, _ = jax.lax.scan(step, state, None, length=300)
    np.testing.assert_allclose(state[0].sum_of_squares, 300.1, rtol=1e-5)


def test_the_start_may_be_traced():
    tx = lambda start: steepest.scale_by_rss(start)
    found = jax.jit(lambda start: tx(start).init(G))(jnp.asarray(0.5))
    assert found.sum_of_squares.dtype == jnp.float32
    assert not found.sum_of_squares.weak_type
    np.testing.assert_array_equal(found.sum_of_squares, 0.5)


def test_impossible_numbers_are_refused():
    with pytest.raises(ODD, match=r"initial_accumulator_value is -0.1"):
        steepest.adagrad(0.1, -0.1)


@pytest.mark.usefixtures("as_users_do")
def test_impossible_arguments_are_refused():
    refuses(steepest.scale_by_rss, initial_accumulator_value=NOT_AMOUNTS)


def test_a_number_spoilt_by_a_nan_stands_still():
    """As in Optax: the sum is NaN from then on, and the update is 0."""
    tx = steepest.scale_by_rss()
    state = tx.init(jnp.ones(2))
    _, state = tx.update(jnp.array([jnp.nan, 1.0]), state)
    u, _ = tx.update(jnp.ones(2), state)
    assert u[0] == 0.0
    assert u[1] > 0
