"""Params that stay nonnegative."""

import jax.numpy as jnp
import numpy as np
import pytest

import steepest

P = jnp.array([2.0, 1.0, 0.0, -3.0, -1.0])
G = jnp.array([-1.0, -5.0, -1.0, 1.0, 2.0])


def test_params_that_would_be_negative_become_zero():
    tx = steepest.keep_params_nonnegative()
    u, state = tx.update(G, tx.init(P), P)
    np.testing.assert_array_equal(P + u, [1, 0, 0, 0, 1])
    assert isinstance(state, steepest.NonNegativeParamsState)


def test_at_the_end_of_an_optimizer():
    tx = steepest.chain(steepest.adam(0.5), steepest.keep_params_nonnegative())
    p = {"w": jnp.array([1.0, 0.1]), "n": None}
    state = tx.init(p)
    for _ in range(3):
        u, state = tx.update({"w": jnp.array([-1.0, 1.0]), "n": None}, state, p)
        p = steepest.apply_updates(p, u)
        assert np.all(p["w"] >= 0)
    np.testing.assert_allclose(p["w"], [2.5, 0], rtol=1e-5)


def test_params_are_needed():
    with pytest.raises(ValueError, match="keep_params_nonnegative: `update` needs"):
        steepest.keep_params_nonnegative().update(G, steepest.EmptyState())
