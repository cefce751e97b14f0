"""Which dtype a formula over several arrays computes in."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.numerics import is_inexact, limited, wide_dtype

f16, bf16, f32, c64 = jnp.float16, jnp.bfloat16, jnp.float32, jnp.complex64
f64, c128 = jnp.float64, jnp.complex128


def _of(*dtypes):
    return [jax.ShapeDtypeStruct((), dtype) for dtype in dtypes]


@pytest.mark.parametrize("dtypes", [(), (f16,), (bf16, f32), (c64, f16), (jnp.int32,)])
def test_formulas_compute_in_32_bits(dtypes):
    assert wide_dtype(_of(*dtypes)) == f32
    with jax.enable_x64(True):
        assert wide_dtype(_of(*dtypes)) == f32


@pytest.mark.parametrize("dtypes", [(f64,), (c128,), (f16, f64), (c128, c64)])
def test_formulas_compute_in_64_bits_where_anything_has_them(dtypes):
    with jax.enable_x64(True):
        assert wide_dtype(_of(*dtypes)) == f64
        assert wide_dtype(_of(*dtypes[::-1])) == f64


def test_what_has_no_digits_does_not_decide():
    """`None` leaves, keys and 64-bit integers next to arrays."""
    with jax.enable_x64(True):
        assert wide_dtype([None, jax.random.key(0), *_of(jnp.int64, f32)]) == f32


@pytest.mark.parametrize("dtype", [f16, bf16, f32, c64])
def test_inexact_are_floats_and_complex_numbers(dtype):
    assert is_inexact(jnp.ones(2, dtype))
    assert is_inexact(jax.ShapeDtypeStruct((2,), dtype))


@pytest.mark.parametrize(
    "x", [None, 1.0, jnp.ones(2, jnp.int32), np.array(True), jax.random.key(0)]
)
def test_inexact_is_nothing_else(x):
    assert not is_inexact(x)


def test_limited():
    x = jnp.array([1e30, -1e30, 3.0])
    assert jnp.isfinite(jnp.sum(limited(x) ** 2))
    assert limited(x)[2] == 3
    z = jnp.array([1e30 + 2j])
    assert jnp.isfinite(jnp.sum(jnp.abs(limited(z)) ** 2)) and limited(z)[0].imag == 2
    broken = jnp.array([jnp.inf, -jnp.inf, jnp.nan])
    np.testing.assert_array_equal(limited(broken), broken)
