"""Gradient descent and its momentum, alone."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steepest

from ._refused import NOT_DTYPES, NOT_FLAGS, refuses

G = jnp.array([3.0, -0.5])


def test_without_momentum_nothing_is_remembered():
    assert jax.tree.leaves(steepest.sgd(0.1).init(G)) == []


def test_no_momentum_is_momentum_zero():
    plain, zero = steepest.sgd(0.1), steepest.sgd(0.1, momentum=0.0)
    u, _ = plain.update(G, plain.init(G))
    v, _ = zero.update(G, zero.init(G))
    np.testing.assert_array_equal(u, v)


def test_a_steady_gradient_is_multiplied():
    """By 1 / (1 - momentum) in the limit."""
    tx = steepest.sgd(1.0, momentum=0.5)
    state = tx.init(G)
    for _ in range(30):
        u, state = tx.update(G, state)
    np.testing.assert_allclose(u, -2 * G, rtol=1e-6)


def test_nag_is_nesterov_once_it_moves():
    """Except for the first step, whose momentum it does not keep."""
    gs = [0 * G, G, -0.3 * G, 0.2 * G]
    nag, sgd = steepest.nag(0.1, 0.9), steepest.sgd(0.1, 0.9, nesterov=True)
    p = q = jnp.array([1.0, 2.0])
    nag_state, sgd_state = nag.init(p), sgd.init(q)
    for g in gs:
        u, nag_state = nag.update(g, nag_state, p)
        v, sgd_state = sgd.update(g, sgd_state, q)
        p, q = p + u, q + v
    np.testing.assert_allclose(p, q, rtol=1e-5)


def test_nag_takes_schedules():
    tx = steepest.nag(lambda t: 0.1 * (t + 1).astype(float), lambda t: 0.5)
    p = jnp.array([1.0])
    u, state = tx.update(jnp.ones(1), tx.init(p), p)
    np.testing.assert_allclose(u, -0.1, rtol=1e-6)
    p = p + u
    u, _ = tx.update(jnp.ones(1), state, p)
    np.testing.assert_allclose(u, -0.2 - 0.5 * 0.2, rtol=1e-6)


@pytest.mark.usefixtures("as_users_do")
def test_impossible_arguments_are_refused():
    refuses(steepest.sgd, 0.1, nesterov=NOT_FLAGS, accumulator_dtype=NOT_DTYPES)
