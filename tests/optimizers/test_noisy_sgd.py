"""Gradient descent with noise."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steepest


def test_it_is_descent_and_noise():
    g = jnp.array([1.0, -2.0])
    tx, noise = steepest.noisy_sgd(0.1, key=3), steepest.add_noise(0.01, 0.55, 3)
    u, state = tx.update(g, tx.init(g))
    v, _ = noise.update(g, noise.init(g))
    np.testing.assert_allclose(u, -0.1 * v, rtol=1e-6)
    assert isinstance(state[0], steepest.AddNoiseState)


def test_no_key_and_an_old_seed():
    with pytest.warns(UserWarning, match="got no `key`"):
        steepest.noisy_sgd(0.1)
    with pytest.warns(DeprecationWarning, match="`seed` is deprecated"):
        tx = steepest.noisy_sgd(0.1, seed=2)
    assert tx.init(None)[0].rng_key == jax.random.key(2)
