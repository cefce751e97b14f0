"""Norms that are zero at zero."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.numerics import length, norms, norms_along, rms, sqrt_or_zero, squares

X = jnp.array([[3.0, 0.0], [0.0, 4.0]])


def test_of_some_array():
    assert float(length(X)) == 5
    assert float(rms(X)) == 2.5
    assert float(length(jnp.array([3.0 + 4.0j]))) == 5


def test_of_zeros_it_is_zero_and_flat():
    zeros = jnp.zeros(2)
    with jax.debug_nans(True):
        for size in (length, rms):
            value, slope = jax.value_and_grad(size)(zeros)
            assert value == 0
            np.testing.assert_array_equal(slope, zeros)
        assert jax.grad(sqrt_or_zero)(0.0) == 0


def test_of_nothing_it_is_zero():
    assert length(jnp.zeros((0, 3))) == 0
    assert rms(jnp.zeros((0, 3))) == 0


def test_squares_are_wide_and_real():
    assert squares(jnp.array([300.0], jnp.float16)).tolist() == [90000.0]
    assert squares(jnp.array([3], jnp.int32)).dtype == jnp.float32
    assert squares(jnp.array([3.0 + 4.0j])).tolist() == [25.0]


@pytest.mark.parametrize("shape", [(), (1,), (1, 1), (3, 2), (2, 3, 2), (0, 3), (3, 0)])
@pytest.mark.parametrize("scale", [0.0, 1e-37, 1e-30, 1.0, 1e30, 5e37])
def test_norms_over_the_last_axes_at_every_scale(shape, scale):
    """Also for one element: XLA would multiply constant factors of a square first."""
    x = scale * (1 + jnp.cos(jnp.arange(np.prod(shape, dtype=int))).reshape(shape))
    for ndim in range(len(shape) + 1):
        last = tuple(range(-ndim, 0))
        y = np.asarray(x, float)
        top = np.abs(y).max(initial=0) or 1
        want = top * np.sqrt(((y / top) ** 2).sum(last, keepdims=True))
        for f in (norms, jax.jit(norms, static_argnums=1)):
            np.testing.assert_allclose(f(x, ndim), want, rtol=1e-5)


def test_norms_have_finite_derivatives():
    f = lambda x: jnp.sum(norms(x, 2))
    np.testing.assert_array_equal(jax.grad(f)(jnp.zeros((2, 3, 2))), 0)
    x = jnp.array([[[3.0, 4.0]]])
    np.testing.assert_allclose(jax.grad(f)(x), x / 5, rtol=1e-6)
    z = jnp.array([[3.0, 4j]])
    np.testing.assert_allclose(norms(z, 2), [[5.0]], rtol=1e-6)


def test_norms_along_some_axes():
    x = jnp.arange(6.0).reshape(1, 2, 3)
    for along in (0, 1, (0, 2), (), None):
        want = np.sqrt(np.square(np.asarray(x)).sum(along, keepdims=True))
        np.testing.assert_allclose(norms_along(x, along), want, rtol=1e-6)
    assert norms_along(jnp.array([1.0, jnp.inf]), 0)[0] == jnp.inf


@pytest.mark.parametrize("scale", [1e-37, 1e37])
def test_derivatives_of_norms_at_every_scale(scale):
    x = scale * jnp.array([3.0, 4.0])
    slope = jax.jit(jax.grad(lambda x: norms_along(x, 0)[0]))(x)
    np.testing.assert_allclose(slope, [0.6, 0.8], rtol=1e-5)
