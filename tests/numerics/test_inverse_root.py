"""Inverse roots: as Optax where it is correct, and eigenvalues everywhere."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import steepest

ROOT = np.random.default_rng(0).normal(size=(4, 4))
POSITIVE = ROOT @ ROOT.T
OPTIONS = {
    "plain": {},
    "no steps": dict(num_iters=0),
    "one step": dict(num_iters=1),
    "five steps": dict(num_iters=5),
    "ridge": dict(ridge_epsilon=0.1),
    "loose": dict(error_tolerance=0.01),
}
ours = jax.jit(steepest.matrix_inverse_pth_root, static_argnums=1)
theirs = jax.jit(optax.matrix_inverse_pth_root)


def _exact(matrix, p, ridge=1e-6):
    values, vectors = np.linalg.eigh(np.asarray(matrix, np.float64))
    return (vectors * (values + ridge * values[-1]) ** (-1 / p)) @ vectors.T


def _same(matrix, rtol, p, change):
    defaults = dict(num_iters=100, ridge_epsilon=1e-6, error_tolerance=1e-6)
    options = {**defaults, **change}
    root, error = ours(matrix, p, **options)
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        wanted, their_error = theirs(matrix, p, **options)
    assert root.dtype == wanted.dtype and error.dtype == their_error.dtype
    np.testing.assert_allclose(root, wanted, rtol=rtol, atol=rtol)
    np.testing.assert_allclose(error, their_error, rtol=rtol, atol=rtol)


@pytest.mark.parametrize("p", [1, 2, 4])
def test_same_as_optax(p):
    for change in OPTIONS.values():
        _same(jnp.asarray(POSITIVE, jnp.float32), 2e-5, p, change)


def test_same_as_optax_in_64_bits():
    with jax.enable_x64(True):
        for change in OPTIONS.values():
            _same(jnp.asarray(POSITIVE), 1e-12, 2, change)


@pytest.mark.parametrize("p", [3, 6, 7])
def test_it_is_the_root(p):
    """Optax is correct only for powers of two: it treats 3 as 4 in one place."""
    matrix = jnp.asarray(POSITIVE, jnp.float32)
    root, error = ours(matrix, p)
    np.testing.assert_allclose(root, _exact(matrix, p), rtol=2e-4, atol=1e-5)
    assert error < 1e-5


def test_p_may_be_a_float_or_an_array():
    for p in (2.0, jnp.array(2), np.int64(2)):
        one, _ = steepest.matrix_inverse_pth_root(jnp.array([[4.0]]), p)
        np.testing.assert_allclose(one, [[0.5]], rtol=1e-5)


def test_a_traced_p():
    matrix = jnp.asarray(POSITIVE, jnp.float32)
    root = jax.jit(lambda a, p: steepest.matrix_inverse_pth_root(a, p)[0])
    for p in (2, 3):
        np.testing.assert_allclose(root(matrix, p), _exact(matrix, p), rtol=1e-4)


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_squares_do_not_overflow(scale):
    matrix = jnp.asarray(scale * POSITIVE, jnp.float32)
    root, _ = ours(matrix, 4)
    np.testing.assert_allclose(root, _exact(matrix, 4), rtol=1e-3)


def test_of_a_singular_matrix():
    """Optax stops at the first step, where the largest element of the error grows."""
    with jax.enable_x64(True):
        ones = jnp.ones((3, 3))
        root, error = ours(ones, 2)
        np.testing.assert_allclose(root, _exact(ones, 2), rtol=1e-5)
        assert error < 1e-6


def test_of_zero_it_is_finite():
    """Optax returns NaN."""
    root, error = ours(jnp.zeros((3, 3)), 2)
    assert jnp.isfinite(root).all() and jnp.isfinite(error)
    assert (jnp.diag(root) > 1e15).all()


def test_of_a_negative_matrix_it_is_finite_and_the_error_is_large():
    root, error = ours(-jnp.eye(3), 2)
    assert jnp.isfinite(root).all() and error > 0.5


def test_half_precision_many_at_once_one_and_none():
    matrix = jnp.asarray(POSITIVE).astype(jnp.bfloat16)
    root, error = ours(matrix, 2)
    assert root.dtype == jnp.bfloat16 and error.dtype == jnp.float32
    np.testing.assert_allclose(root.astype(float), _exact(matrix, 2), rtol=0.02)
    many = jnp.asarray(np.stack([POSITIVE, 4 * POSITIVE]), jnp.float32)
    roots, _ = jax.vmap(lambda a: ours(a, 2))(many)
    np.testing.assert_allclose(roots[1], 0.5 * roots[0], rtol=1e-4)
    one, error = ours(jnp.array([[4.0]]), 2)
    np.testing.assert_allclose(one, [[0.5]], rtol=1e-5)
    assert error == 0
    assert ours(jnp.zeros((0, 0)), 2)[0].shape == (0, 0)


@pytest.mark.parametrize("p", [0, -2, 2.5, float("nan")])
def test_p_is_a_whole_number(p):
    """Optax returns another root, or NaN."""
    with pytest.raises(ValueError, match=f"matrix_inverse_pth_root: p is {p}"):
        steepest.matrix_inverse_pth_root(jnp.eye(2), p)


@pytest.mark.parametrize(
    "matrix", [jnp.ones((3, 4)), jnp.ones(3), jnp.eye(2, dtype=jnp.int32)]
)
def test_the_matrix_must_be_square_and_real(matrix):
    with pytest.raises(ValueError, match="matrix_inverse_pth_root: matrix"):
        steepest.matrix_inverse_pth_root(matrix, 2)
