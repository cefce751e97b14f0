"""Updates normalized to a fixed norm."""

import jax
import jax.numpy as jnp
import numpy as np

import steepest

G = {"w": jnp.array([3.0]), "b": (None, jnp.array([[4.0]]))}


def _step(tx, g):
    return tx.update(g, tx.init(g))[0]


def test_all_leaves_together_have_the_length():
    u = _step(steepest.normalize_by_update_norm(10.0, 0.0), G)
    np.testing.assert_allclose(u["w"], [6], rtol=1e-6)
    np.testing.assert_allclose(u["b"][1], [[8]], rtol=1e-6)
    assert u["b"][0] is None


def test_eps_is_added_to_the_length():
    u = _step(steepest.normalize_by_update_norm(10.0, 5.0), G)
    np.testing.assert_allclose(u["w"], [3], rtol=1e-6)


def test_zeros_stay_zeros_also_without_eps():
    """Optax divides zero by zero."""
    tx = steepest.normalize_by_update_norm(eps=0.0)
    with jax.debug_nans(True):
        u, slopes = _step(tx, jnp.zeros(2)), jax.jacobian(lambda g: _step(tx, g))
        np.testing.assert_array_equal(u, jnp.zeros(2))
        assert np.isfinite(slopes(jnp.zeros(2))).all()


def test_half_precision():
    u = _step(steepest.normalize_by_update_norm(), jnp.full(4, 300.0, jnp.float16))
    np.testing.assert_array_equal(u, jnp.full(4, 0.5, jnp.float16))
