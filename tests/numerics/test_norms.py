"""Differentiable roots and norms."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from steepest.numerics import cube_root, root, sum_of_squares

squares = st.floats(1e-6, 1e6)


@settings(max_examples=30)
@given(squares)
def test_root_is_the_square_root_with_its_slope(x):
    y, slope = jax.value_and_grad(root)(jnp.array(x))
    np.testing.assert_allclose(y, x**0.5, rtol=1e-6)
    np.testing.assert_allclose(slope, 0.5 * x**-0.5, rtol=1e-6)


@settings(max_examples=30)
@given(squares)
def test_root_has_its_second_slope(x):
    np.testing.assert_allclose(
        jax.grad(jax.grad(root))(jnp.array(x)), -0.25 * x**-1.5, rtol=1e-5
    )


def test_root_is_flat_at_zero():
    """And so small there that no `eps` and no sum is affected."""
    zero = jnp.zeros(())
    y, slope = jax.jvp(root, (zero,), (jnp.ones(()),))
    assert 0 < y < 1e-18
    assert slope == jax.grad(root)(zero) == 0


def test_cube_root_is_that_of_numpy_with_its_slope():
    x = jnp.exp(jnp.linspace(-87.0, 88.0, 99))
    y, slope = jax.jvp(cube_root, (x,), (jnp.ones_like(x),))
    np.testing.assert_allclose(y, np.cbrt(np.asarray(x, float)), rtol=3e-7)
    np.testing.assert_allclose(slope, y / x / 3, rtol=1e-5)


def test_cube_root_is_flat_at_zero_and_finite_everywhere():
    ends = jnp.array([0.0, jnp.inf])
    y, slope = jax.jvp(cube_root, (ends,), (jnp.ones(2),))
    assert 0 < y[0] < 1e-12
    assert jnp.isfinite(y[1])
    assert slope.tolist() == [0, 0]


def test_root_is_flat_at_zero_in_the_second_slope_too():
    """Needed for hypergradients of a training step that itself takes a gradient."""
    assert jax.grad(jax.grad(root))(jnp.zeros(())) == 0


def test_a_length_has_a_slope_at_zero():
    """`sqrt` gives NaN there: infinity times zero."""

    def length(f):
        return jax.grad(lambda x: f(sum_of_squares(x)))(jnp.zeros(3))

    assert jnp.isnan(length(jnp.sqrt)).all()
    np.testing.assert_array_equal(length(root), jnp.zeros(3))


def test_root_maps_and_compiles():
    x = jnp.array([0.0, 1.0, 4.0])
    np.testing.assert_allclose(jax.vmap(root)(x), [0, 1, 2], atol=1e-18)
    np.testing.assert_array_equal(jax.jit(root)(x), root(x))
    np.testing.assert_array_equal(jax.vmap(jax.grad(root))(x), [0, 0.5, 0.25])


@pytest.mark.parametrize("dtype", [jnp.float16, jnp.bfloat16, jnp.float32])
def test_root_keeps_the_dtype(dtype):
    y, slope = jax.jvp(root, (jnp.array([4.0], dtype),), (jnp.ones(1, dtype),))
    assert (y.dtype, slope.dtype) == (dtype, dtype)
    np.testing.assert_array_equal([y, slope], jnp.array([[2], [0.25]], dtype))


def test_root_has_64_bits():
    with jax.enable_x64(True):
        y, slope = jax.value_and_grad(root)(jnp.array(2.0))
        np.testing.assert_allclose([y, slope], [2**0.5, 8**-0.5], rtol=1e-15)
        assert jax.grad(root)(jnp.zeros(())) == 0


@settings(max_examples=20)
@given(st.lists(st.floats(-1e3, 1e3, width=32), max_size=5))
def test_sum_of_squares_is_the_square_of_the_length(xs):
    x = jnp.array(xs, jnp.float32)
    found = sum_of_squares(x)
    assert found.shape == ()
    length = np.linalg.norm(np.array(xs)) ** 2
    np.testing.assert_allclose(found, length, rtol=1e-5, atol=1e-30)


def test_sum_of_squares_of_complex_numbers_is_real():
    x = jnp.array([[3.0 + 4.0j], [1.0j]], jnp.complex64)
    assert sum_of_squares(x) == 26
    assert sum_of_squares(x).dtype == jnp.float32
