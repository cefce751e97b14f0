"""Norms that are zero at zero."""

import jax
import jax.numpy as jnp
import numpy as np

from steepest.numerics import length, rms, sqrt_or_zero, squares

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
