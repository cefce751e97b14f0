"""NaNs set to zero."""

import jax
import jax.numpy as jnp
import numpy as np

import steepest

G = {"w": jnp.array([jnp.nan, jnp.inf, 1.0]), "b": jnp.array(2.0), "n": None}


def test_only_nans_and_where_they_were():
    tx = steepest.zero_nans()
    state = tx.init(G)
    assert state.found_nan == {"w": False, "b": False, "n": None}
    u, state = tx.update(G, state)
    np.testing.assert_array_equal(u["w"], [0, np.inf, 1])
    assert state.found_nan == {"w": True, "b": False, "n": None}


def test_a_flag_is_cleared_by_a_good_step():
    tx = steepest.zero_nans()
    _, state = tx.update(G, tx.init(G))
    _, state = tx.update(jax.tree.map(jnp.ones_like, G), state)
    assert not state.found_nan["w"]


def test_half_a_nan_is_a_nan():
    g = jnp.array([1.0 + jnp.nan * 1j, 1.0j])
    tx = steepest.zero_nans()
    u, state = tx.update(g, tx.init(g))
    assert u.tolist() == [0, 1j]
    assert state.found_nan


def test_nothing_has_no_nan():
    tx, g = steepest.zero_nans(), jnp.zeros((0, 3))
    _, state = tx.update(g, tx.init(g))
    assert not state.found_nan
