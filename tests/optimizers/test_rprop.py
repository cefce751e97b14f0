"""Rprop alone."""

import jax.numpy as jnp
import numpy as np
import pytest

import steepest

from ..unusual import ODD
from ._refused import NAN, NOT_AMOUNTS, NOT_FINITE, refuses
from ._steps import steps


def test_steps_grow_while_the_sign_stays():
    """One update late, as in Optax: the first update is zero."""
    us, state = steps(steepest.scale_by_rprop(0.1), [5.0, 1e-3, 7.0, 1.0])
    np.testing.assert_allclose(us, [0.0, 0.1, 0.12, 0.144], rtol=1e-5)
    np.testing.assert_allclose(state.step_sizes, 0.1728, rtol=1e-5)


def test_a_turn_is_not_taken_and_the_step_shrinks():
    us, state = steps(steepest.scale_by_rprop(0.1), [5.0, 5.0, -5.0, -5.0, -5.0])
    np.testing.assert_allclose(us, [0.0, 0.1, 0.0, 0.0, -0.06], rtol=1e-5)
    np.testing.assert_allclose(state.step_sizes, 0.072, rtol=1e-5)


def test_no_gradient_no_change_of_the_step():
    us, state = steps(steepest.scale_by_rprop(0.1), [1.0, 0.0, 0.0])
    np.testing.assert_allclose(us, [0.0, 0.1, 0.0], rtol=1e-6)
    np.testing.assert_allclose(state.step_sizes, 0.1, rtol=1e-6)


def test_steps_stay_between_the_shortest_and_the_longest():
    tx = steepest.scale_by_rprop(0.1, min_step_size=0.08, max_step_size=0.11)
    assert steps(tx, [1.0, 1.0, 1.0])[1].step_sizes == jnp.asarray(0.11)
    assert steps(tx, [1.0, -1.0])[1].step_sizes == jnp.asarray(0.08)


def test_the_smallest_gradient_has_a_sign():
    """The product of two small numbers would underflow."""
    tiny = float(jnp.finfo(jnp.float32).tiny)
    us, _ = steps(steepest.scale_by_rprop(1e-3, min_step_size=0.0), [tiny, -tiny])
    assert not us[1].any()


def test_the_recipe_goes_down():
    us, _ = steps(steepest.rprop(0.1), [2.0, 2.0])
    np.testing.assert_allclose(us[1], -0.1, rtol=1e-6)


def test_step_sizes_of_half_precision_are_kept_wide():
    p = jnp.ones(2, jnp.float16)
    state = steepest.rprop(1e-6).init(p)
    assert state[0].step_sizes.dtype == jnp.float32
    assert state[0].prev_updates.dtype == jnp.float16
    np.testing.assert_allclose(state[0].step_sizes, 1e-6)


@pytest.mark.usefixtures("as_users_do")
def test_impossible_numbers_are_refused():
    with pytest.raises(ODD, match=r"^rprop: eta_plus is -1.0"):
        steepest.rprop(0.1, eta_plus=-1.0)
    with pytest.raises(
        TypeError, match="learning_rate is a function, expected a number"
    ):
        steepest.rprop(lambda t: 0.1)


def test_complex_gradients_are_refused():
    """The product of two complex numbers is neither above nor below zero."""
    g = jnp.ones(2, jnp.complex64)
    tx = steepest.rprop(0.1)
    with pytest.raises(ValueError, match=r"^rprop: .* complex64, expected a real"):
        tx.update(g, tx.init(g))


@pytest.mark.usefixtures("as_users_do")
def test_impossible_arguments_are_refused():
    refuses(
        steepest.scale_by_rprop,
        0.1,
        eta_minus=[-0.1, 1.5, NAN],
        eta_plus=[0.0, -1.0, NAN],
        min_step_size=NOT_AMOUNTS,
        max_step_size=[-1.0, NAN, None],
    )
    refuses(steepest.scale_by_rprop, learning_rate=NOT_FINITE)
