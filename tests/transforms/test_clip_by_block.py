"""Clipping each leaf separately."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steepest

from ..unusual import ODD

G = {"w": jnp.array([3.0, -3.0]), "s": jnp.array(0.5), "n": None}


def _step(tx, g):
    return tx.update(g, tx.init(g))[0]


def test_only_the_large_leaf_is_clipped():
    u = _step(steepest.clip_by_block_rms(1.0), G)
    np.testing.assert_allclose(u["w"], [1, -1], rtol=1e-6)
    assert u["s"] == 0.5
    assert u["n"] is None


@pytest.mark.parametrize("threshold", [0.0, 1.0])
def test_zeros_stay_zeros(threshold):
    """Optax divides zero by zero if the threshold is zero."""
    tx, zeros = steepest.clip_by_block_rms(threshold), jnp.zeros(2)
    with jax.debug_nans(True):
        np.testing.assert_array_equal(_step(tx, zeros), zeros)
        slopes = jax.jacobian(lambda g: _step(tx, g))(zeros)
    np.testing.assert_array_equal(slopes, threshold * jnp.eye(2))


def test_clipped_to_nothing_is_nothing():
    u = _step(steepest.clip_by_block_rms(0.0), G)
    np.testing.assert_array_equal(u["w"], [0, 0])


def test_half_precision_and_no_elements():
    g = {"w": jnp.full(4, 300.0, jnp.float16), "z": jnp.zeros((0, 2), jnp.float16)}
    u = _step(steepest.clip_by_block_rms(1.0), g)
    np.testing.assert_array_equal(u["w"], jnp.ones(4, jnp.float16))
    assert u["z"].shape == (0, 2)


def test_a_negative_threshold_is_refused():
    with pytest.raises(ODD, match=r"clip_by_block_rms: threshold is -1\.0"):
        steepest.clip_by_block_rms(-1.0)
