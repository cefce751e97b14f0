"""Gradient descent, step by step."""

import jax.numpy as jnp
import numpy as np

import steepest
from steepest.decoupled import sgd_init, sgd_step


def test_the_state_is_the_time_step():
    assert sgd_init([jnp.ones(2)]) == 0
    state, _ = sgd_step(sgd_init(None), [jnp.ones(2)], [jnp.ones(2)])
    assert state == 1


def test_theta_goes_down_by_eta():
    _, theta = sgd_step(sgd_init(None), [jnp.array([3.0])], [jnp.array([5.0])])
    np.testing.assert_allclose(theta[0], [3 - 0.001 * 5], rtol=1e-7)


def test_a_constant_update_adds_up():
    state, theta = sgd_init(None), [jnp.array([3.0, 0.0])]
    for _ in range(5):
        state, theta = sgd_step(state, theta, [jnp.array([1.0, -2.0])], eta=0.5)
    np.testing.assert_allclose(theta[0], [0.5, 5.0])


def test_the_same_as_the_transformation():
    theta = [jnp.array([1.0, -2.0])]
    updates = [jnp.array([0.3, 0.7])]
    tx = steepest.sgd(0.1)
    moves, _ = tx.update(updates, tx.init(theta))
    _, result = sgd_step(sgd_init(theta), theta, updates, eta=0.1)
    np.testing.assert_allclose(result[0], theta[0] + moves[0], rtol=1e-6)


def test_a_half_weight_takes_a_step_computed_wide():
    """In bfloat16, 0.1 is 0.1001, and the step would be 0.1011."""
    theta = [jnp.zeros(1, jnp.bfloat16)]
    updates = [jnp.full(1, 1.0078125, jnp.bfloat16)]
    _, new = sgd_step(sgd_init(theta), theta, updates, eta=0.1)
    assert new[0] == -0.1005859375
