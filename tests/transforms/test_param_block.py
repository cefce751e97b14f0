"""Steps in proportion to the params."""

import jax.numpy as jnp
import numpy as np
import pytest

import steepest

SCALES = [
    ("scale_by_param_block_norm", 5.0),
    ("scale_by_param_block_rms", 2.5),
]
scales = pytest.mark.parametrize("name, size", SCALES)
P = jnp.array([[3.0, 0.0], [0.0, 4.0]])


@scales
def test_by_the_size_of_the_param(name, size):
    tx = getattr(steepest, name)()
    u, _ = tx.update(jnp.ones((2, 2)), tx.init(P), P)
    np.testing.assert_allclose(u, jnp.full((2, 2), size), rtol=1e-6)


@scales
def test_zero_params_can_leave_zero(name, size):
    tx, zeros = getattr(steepest, name)(0.25), jnp.zeros((2, 2))
    u, _ = tx.update(jnp.ones((2, 2)), tx.init(zeros), zeros)
    np.testing.assert_array_equal(u, jnp.full((2, 2), 0.25))


@scales
def test_half_precision_squares_do_not_overflow(name, size):
    tx, p = getattr(steepest, name)(), (100 * P).astype(jnp.float16)
    u, _ = tx.update(jnp.ones((2, 2), jnp.float16), tx.init(p), p)
    assert u.dtype == jnp.float16
    np.testing.assert_array_equal(u, jnp.full((2, 2), 100 * size, jnp.float16))


@scales
def test_params_are_needed(name, size):
    with pytest.raises(ValueError, match=f"{name}: `update` needs `params`"):
        getattr(steepest, name)().update(P, steepest.EmptyState())
