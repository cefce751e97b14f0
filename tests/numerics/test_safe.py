"""Norms with a minimum, counts with a maximum."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from steepest import (
    safe_increment,
    safe_int32_increment,
    safe_norm,
    safe_root_mean_squares,
)
from steepest.numerics import sqrt_or_zero
from tests.oracles._calls import assert_same, called

A = jnp.array([[3.0, -4.0], [0.0, 0.0]])
NORMS = [
    (None, None),
    (None, 1),
    (1, 0),
    (2, (0, 1)),
    (jnp.inf, -1),
    (-jnp.inf, 1),
    ("fro", None),
    ("nuc", None),
    (0, 1),
    (3, 0),
]


@pytest.mark.parametrize("ord, axis", NORMS, ids=str)
def test_norms_as_in_optax(ord, axis):
    for keepdims in (False, True):
        args = A, 0.5, ord, axis, keepdims
        assert_same(safe_norm(*args), called(optax.safe_norm, *args))


def test_norms_and_slopes_as_in_optax_in_64_bits():
    with jax.enable_x64(True):
        x = jnp.array([0.3, -0.4, 1.1], jnp.float64)
        for least in (0.1, 5.0):
            for ours, theirs in (
                (safe_norm, optax.safe_norm),
                (safe_root_mean_squares, optax.safe_root_mean_squares),
            ):
                assert_same(ours(x, least), called(theirs, x, least))
                slopes = jax.grad(ours)(x, least), called(jax.grad(theirs), x, least)
                assert_same(*slopes)


@pytest.mark.parametrize("f", [safe_norm, safe_root_mean_squares])
@pytest.mark.parametrize("least", [1e-3, 0.0, -1.0])
def test_the_slope_at_zero_is_zero(f, least):
    """Also below zero, where Optax gives NaN."""
    y, slope = jax.value_and_grad(f)(jnp.zeros(2), least)
    np.testing.assert_allclose(y, max(least, 0.0))
    np.testing.assert_array_equal(slope, [0, 0])


@pytest.mark.parametrize("f", [safe_norm, safe_root_mean_squares])
def test_the_floor_has_a_slope_where_it_is_chosen(f):
    slope = jax.grad(f, argnums=1)
    assert slope(jnp.zeros(2), 1.0) == 1
    assert slope(jnp.full(2, 9.0), 1.0) == 0


def test_rows_have_their_own_floors():
    """Optax compares columns with rows if the minimum is an array."""
    found = safe_norm(A, jnp.array([1.0, 10.0]), axis=1)
    np.testing.assert_allclose(found, [5, 10])
    slope = jax.grad(lambda x: safe_norm(x, 0.1, axis=1).sum())(A)
    np.testing.assert_allclose(slope, [[0.6, -0.8], [0, 0]], rtol=1e-6)


def test_half_precision_does_not_overflow():
    x = jnp.full(4, 300, jnp.float16)
    assert safe_norm(x, 0.0) == 600
    assert safe_root_mean_squares(x, 0.0) == 300
    assert safe_norm(x, 0.0).dtype == safe_root_mean_squares(x, 0.0).dtype == x.dtype
    assert safe_norm(x, jnp.zeros((), jnp.float32)).dtype == jnp.float32


def test_integers_numbers_and_complex_numbers():
    assert_same(safe_norm(jnp.array([3, 4]), 0), jnp.array(5.0))
    assert_same(safe_norm(-3.0, 0), jnp.array(3.0))
    assert_same(safe_norm(jnp.array([3j, 4]), 0), jnp.array(5.0))
    assert_same(safe_root_mean_squares(jnp.array([3j, 3]), 0.0), jnp.array(3.0))


def test_of_no_entries_the_floor():
    assert safe_norm(jnp.zeros(0), 0.25) == 0.25
    assert safe_root_mean_squares(jnp.zeros(0), 0.25) == 0.25


def test_nan_is_not_hidden_and_bad_norms_are_refused():
    assert jnp.isnan(safe_norm(jnp.array([jnp.nan]), 1.0))
    with pytest.raises(ValueError):
        safe_norm(A, 0.0, "bad")


def test_sqrt_or_zero():
    y, slope = jax.vmap(jax.value_and_grad(sqrt_or_zero))(jnp.array([0.0, 4.0]))
    np.testing.assert_array_equal([y, slope], [[0, 2], [0, 0.25]])
    assert jnp.isnan(sqrt_or_zero(jnp.array(jnp.nan)))


@pytest.mark.parametrize("f", [safe_increment, safe_int32_increment])
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint32", "float16"])
def test_counts_stop_at_the_top(f, dtype):
    info = jnp.finfo if dtype == "float16" else jnp.iinfo
    top = info(dtype).max
    x = jnp.array([0, 5, top], dtype)
    found = f(x)
    assert found.dtype == x.dtype
    np.testing.assert_array_equal(found, jnp.array([1, 6, top], dtype))


def test_counts_may_be_python_numbers():
    for x in (3, 3.0, np.int32(3), jnp.array(-(2**31))):
        assert_same(safe_increment(x), called(optax.safe_increment, x))
    assert jax.jit(safe_increment)(jnp.array(3)) == 4


@pytest.mark.parametrize("bad", [True, 1j])
def test_what_cannot_be_counted(bad):
    for f in (safe_increment, optax.safe_increment):
        with pytest.raises(ValueError, match="dtype"):
            f(bad)
