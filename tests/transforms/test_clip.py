"""Clipping, element by element and as a whole."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import steepest

from ..unusual import ODD

dtypes = pytest.mark.parametrize("dtype", [jnp.float16, jnp.bfloat16, jnp.float32])
numbers = st.floats(-1e3, 1e3, width=32, allow_subnormal=False)
limits = st.floats(1e-3, 1e3)


def _step(tx, g):
    return tx.update(g, tx.init(g))[0]


@jax.jit
def _clip(limit, g):
    return _step(steepest.clip(limit), g)


@jax.jit
def _clip_by_global_norm(limit, g):
    return _step(steepest.clip_by_global_norm(limit), g)


@settings(max_examples=30)
@given(xs=st.lists(numbers, min_size=3, max_size=3), limit=limits)
def test_clip_bounds_each_element(xs, limit):
    u = _clip(limit, jnp.array(xs, jnp.float32))
    np.testing.assert_allclose(u, np.clip(xs, -limit, limit), rtol=1e-6)


def test_clip_to_nothing_is_nothing():
    u = _step(steepest.clip(0.0), jnp.array([3.0, -3.0, 0.0, jnp.inf]))
    np.testing.assert_array_equal(u, jnp.zeros(4))


@dtypes
def test_clip_keeps_the_dtype(dtype):
    u = _step(steepest.clip(1.0), jnp.array([3.0, -0.5], dtype))
    assert u.dtype == dtype
    np.testing.assert_array_equal(u, jnp.array([1.0, -0.5], dtype))


@settings(max_examples=30)
@given(xs=st.lists(numbers, min_size=3, max_size=3), limit=limits)
def test_the_clipped_length_is_the_smaller_one_and_the_direction_stays(xs, limit):
    g = {"w": jnp.array(xs[:2], jnp.float32), "b": jnp.array(xs[2], jnp.float32)}
    u = _clip_by_global_norm(limit, g)
    length = np.linalg.norm(xs)
    factor = min(1.0, limit / length) if length else 1.0
    found = [*u["w"], u["b"]]
    np.testing.assert_allclose(found, factor * np.array(xs), rtol=1e-5, atol=1e-30)


def test_what_is_short_enough_is_untouched():
    """To the last bit, and at the limit itself."""
    g = {"w": jnp.array([3.0]), "b": jnp.array(4.0)}
    for limit in (5.0, 5.1, 1e9):
        u = _step(steepest.clip_by_global_norm(limit), g)
        jax.tree.map(np.testing.assert_array_equal, u, g)


def test_the_length_is_that_of_all_leaves_together():
    g = {"w": jnp.array([3.0]), "b": (None, jnp.array([[4.0]]))}
    u = _step(steepest.clip_by_global_norm(1.0), g)
    np.testing.assert_allclose(u["w"], [0.6], rtol=1e-6)
    np.testing.assert_allclose(u["b"][1], [[0.8]], rtol=1e-6)
    assert u["b"][0] is None


def test_half_precision_keeps_its_direction():
    """A norm of 600, whose square is too large for float16."""
    g = jnp.full(4, 300.0, jnp.float16) * jnp.array([1, -1, 1, -1], jnp.float16)
    u = _step(steepest.clip_by_global_norm(1.0), g)
    assert u.dtype == jnp.float16
    np.testing.assert_array_equal(u, g / 600)


@dtypes
@pytest.mark.parametrize("limit", [0.0, 1.0])
def test_zeros_stay_zeros(dtype, limit):
    g = jnp.zeros(3, dtype)
    np.testing.assert_array_equal(_step(steepest.clip_by_global_norm(limit), g), g)


def test_clip_by_nothing_is_nothing():
    u = _step(steepest.clip_by_global_norm(0.0), jnp.array([3.0, -4.0]))
    np.testing.assert_array_equal(u, jnp.zeros(2))


def test_an_empty_tree_passes():
    assert _step(steepest.clip_by_global_norm(1.0), {"none": None}) == {"none": None}


@pytest.mark.parametrize("limit", [0.0, 1.0])
def test_the_derivative_at_a_zero_gradient_is_finite(limit):
    """It is that of the identity there, or zero if nothing passes."""
    tx = steepest.clip_by_global_norm(limit)
    slopes = jax.jacobian(lambda g: _step(tx, g))(jnp.zeros(2))
    np.testing.assert_array_equal(slopes, limit * jnp.eye(2))


@pytest.mark.parametrize("limit", [0.0, 1.0])
def test_nothing_is_divided_by_a_zero_length(limit):
    """Not even if the result is discarded: `jax_debug_nans` would stop there."""
    tx = steepest.clip_by_global_norm(limit)
    with jax.debug_nans(True):
        jax.jacobian(lambda g: _step(tx, g))(jnp.zeros(2))


def test_the_derivative_of_a_clipped_gradient_is_across_it():
    """Only rotation changes it: `u = g / |g|` has derivative `(I - u u^T) / |g|`."""
    tx = steepest.clip_by_global_norm(1.0)
    slopes = jax.jacobian(lambda g: _step(tx, g))(jnp.array([3.0, 4.0]))
    u = np.array([0.6, 0.8])
    np.testing.assert_allclose(slopes, (np.eye(2) - np.outer(u, u)) / 5, atol=1e-6)


def test_a_complex_gradient_has_a_length_too():
    u = _step(steepest.clip_by_global_norm(1.0), jnp.array([3.0 + 4.0j], jnp.complex64))
    np.testing.assert_allclose(u, [0.6 + 0.8j], rtol=1e-6)


@pytest.mark.parametrize("clip", [steepest.clip, steepest.clip_by_global_norm])
def test_the_limit_may_be_mapped_over(clip):
    found = jax.vmap(lambda x: _step(clip(x), jnp.array([8.0])))(jnp.array([1.0, 2.0]))
    np.testing.assert_allclose(found, [[1], [2]])


def test_clipping_has_64_bits():
    with jax.enable_x64(True):
        u = _step(steepest.clip_by_global_norm(1.0), jnp.array([1.0, 2.0]))
        np.testing.assert_allclose(u, np.array([1, 2]) / 5**0.5, rtol=1e-15)


@pytest.mark.parametrize(
    "clip, said",
    [
        (steepest.clip, "clip: max_delta is -1.0, .* number of at least 0"),
        (
            steepest.clip_by_global_norm,
            "clip_by_global_norm: max_norm is -1.0, .* number of at least 0",
        ),
    ],
)
def test_a_negative_limit_is_refused(clip, said):
    with pytest.raises(ODD, match=said):
        clip(-1.0)


def test_complex_elements_are_clipped_part_by_part_if_one_says_so():
    """Complex numbers have no order; Optax passes on the error from JAX."""
    g = {"w": jnp.array([3 - 0.5j, -2j], jnp.complex64)}
    with pytest.raises(
        ValueError, match=r"clip: leaf \['w'\] is complex64, expected a real"
    ):
        _step(steepest.clip(1.0), g)
    u = _step(steepest.contrib.split_real_and_imaginary(steepest.clip(1.0)), g)
    np.testing.assert_allclose(u["w"], [1 - 0.5j, -1j])
