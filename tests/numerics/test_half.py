"""Widening half precision."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.numerics import at_least_float32, promoted


@pytest.mark.parametrize(
    "dtype, wide",
    [
        ("float16", "float32"),
        ("bfloat16", "float32"),
        ("float32", "float32"),
        ("int8", "int8"),
        ("bool", "bool"),
        ("complex64", "complex64"),
    ],
)
def test_only_what_is_narrow_is_widened(dtype, wide):
    assert at_least_float32(jnp.ones(2, dtype)).dtype == wide


def test_numbers_become_arrays():
    assert at_least_float32(2.5) == 2.5
    with jax.enable_x64(True):
        assert at_least_float32(np.ones(1)).dtype == jnp.float64


def test_dtypes_meet_also_where_jax_is_strict():
    half, float_ = jnp.ones(1, jnp.float16), jnp.ones(1)
    with pytest.raises(jax.dtypes.TypePromotionError):
        jnp.result_type(half, float_)
    assert promoted(half, float_) == jnp.float32
    assert promoted(half, 1.0) == jnp.float16
    assert promoted(jnp.int32, 1.0) == jnp.float32
