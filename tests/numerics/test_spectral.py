"""The spectral norm of a matrix, roughly, and rotations towards symmetry."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.numerics import more_symmetric, spectral_norm


def _random(d, seed=0):
    return jax.random.normal(jax.random.key(seed), (d, d))


@pytest.mark.parametrize("d", [1, 2, 30, 200])
@pytest.mark.parametrize("size", [1.0, 1e-30, 1e30])
def test_a_lower_bound_close_to_the_norm(d, size):
    x = _random(d)
    for a in (x @ x.T, x - x.T, jnp.diag(x[0]), jnp.outer(x[0], x[0])):
        want = size * np.linalg.norm(np.asarray(a, "float64"), 2)
        found = float(spectral_norm(size * a))
        assert 0.75 * want <= found <= 1.0001 * want


def test_an_eigenvector_that_the_largest_row_does_not_see():
    """The row of the large element has nothing in common with the block of ones."""
    a = jnp.zeros((101, 101)).at[:100, :100].set(1.0).at[100, 100].set(11.0)
    np.testing.assert_allclose(spectral_norm(a), 100, rtol=0.01)


def test_the_norm_of_zeros():
    assert spectral_norm(jnp.zeros((3, 3))) == 0


def test_rotations_lead_to_the_symmetric_root():
    """`q^T q` stays, and `q` becomes its symmetric root."""
    x = _random(6)
    root = x @ x.T / 6 + jnp.eye(6)
    turn = jnp.linalg.qr(jnp.eye(6) + 0.3 * _random(6, 1))[0]
    q = turn @ jnp.diag(jnp.sign(jnp.diag(turn))) @ root
    q = jax.lax.fori_loop(0, 100, lambda _, q: more_symmetric(q), q)
    np.testing.assert_allclose(q, q.T, atol=1e-3)
    np.testing.assert_allclose(q.T @ q, root @ root, rtol=0.02, atol=0.02)


def test_a_symmetric_matrix_stays():
    for q in (jnp.eye(4), jnp.zeros((4, 4)), jnp.diag(jnp.arange(4.0)) + 0.1):
        np.testing.assert_allclose(more_symmetric(q), q, atol=1e-6)
