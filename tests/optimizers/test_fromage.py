"""Fromage."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steepest

from ..unusual import ODD
from ._refused import NOT_FINITE, refuses

P, ACROSS = jnp.array([3.0, 4.0]), jnp.array([40.0, -30.0])


def _step(learning_rate, g, p, **options):
    tx = steepest.fromage(learning_rate, **options)
    return p + tx.update(g, tx.init(p), p)[0]


@pytest.mark.parametrize("rate", [1e-3, 0.1, 1.0])
def test_a_step_across_keeps_the_length_and_turns_by_the_rate(rate):
    q = _step(rate, ACROSS, P)
    np.testing.assert_allclose(jnp.linalg.norm(q), 5, rtol=1e-6)
    cosine = jnp.dot(q, P) / 25
    np.testing.assert_allclose(cosine, 1 / np.sqrt(1 + rate**2), rtol=1e-6)


def test_small_rates_keep_their_digits():
    """`1 / sqrt(1 + 1e-8) - 1` is 0 in float32; the result is -5e-9, also if traced."""

    @jax.jit
    def moved(rate):
        tx = steepest.fromage(rate)
        return tx.update(0 * P, tx.init(P), P)[0]

    np.testing.assert_allclose(moved(1e-4), -5e-9 * P, rtol=1e-5)


def test_zero_params_can_leave_zero():
    q = _step(0.1, ACROSS, jnp.zeros(2), min_norm=1e-3)
    np.testing.assert_allclose(jnp.linalg.norm(q), 1e-4 / np.sqrt(1.01), rtol=1e-5)


def test_a_schedule_is_a_rate():
    constant = _step(lambda count: 0.1, ACROSS, P)
    np.testing.assert_allclose(constant, _step(0.1, ACROSS, P), rtol=1e-6)


def test_an_infinite_rate_is_refused():
    with pytest.raises(ODD, match=r"fromage: learning_rate is inf"):
        steepest.fromage(float("inf"))


@pytest.mark.usefixtures("as_users_do")
def test_impossible_arguments_are_refused():
    refuses(steepest.fromage, learning_rate=NOT_FINITE)
