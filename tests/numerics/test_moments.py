"""Averages of one array: initialization, updates and bias correction."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from steepest.numerics import (
    abs_sq,
    debias,
    ema,
    first_moment,
    increment,
    second_moment,
    zero_count,
)

# The dtype of the params, and that of their squares.
MOMENTS = [
    (jnp.float16, jnp.float32),
    (jnp.bfloat16, jnp.float32),
    (jnp.float32, jnp.float32),
    (jnp.complex64, jnp.float32),
]
WIDE = [(jnp.float64, jnp.float64), (jnp.complex128, jnp.float64)]
decays = st.floats(0, 0.999)
counts = pytest.mark.parametrize("dtype", [jnp.int8, jnp.uint8, jnp.int16, jnp.int32])


def _type(x):
    return x.shape, x.dtype


@pytest.mark.parametrize("dtype", [own for own, _ in MOMENTS])
def test_a_mean_begins_as_zeros_like_the_param(dtype):
    mu = first_moment()(jnp.ones((2, 3), dtype))
    assert _type(mu) == ((2, 3), dtype)
    assert not mu.any()


@pytest.mark.parametrize("dtype, squared", MOMENTS)
def test_a_mean_square_begins_as_real_zeros_of_32_bits(dtype, squared):
    nu = second_moment()(jnp.ones((2, 3), dtype))
    assert _type(nu) == ((2, 3), squared)
    assert not nu.any()


@pytest.mark.parametrize("dtype, squared", MOMENTS + WIDE)
def test_moments_begin_in_64_bits_where_the_params_have_them(dtype, squared):
    with jax.enable_x64(True):
        p = jnp.ones(2, dtype)
        assert _type(first_moment()(p)) == ((2,), dtype)
        assert _type(second_moment()(p)) == ((2,), squared)


@pytest.mark.parametrize("begin", [first_moment, second_moment])
@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float32])
def test_a_given_dtype_decides(begin, dtype):
    for own in (jnp.float16, jnp.float32):
        assert begin(dtype)(jnp.ones(2, own)).dtype == dtype


@pytest.mark.parametrize("begin", [first_moment, second_moment])
@pytest.mark.parametrize("dtype", [own for own, _ in MOMENTS])
def test_moments_begin_from_shapes_alone(begin, dtype):
    """So the state of a model too large for this machine can be planned."""
    shape = jax.ShapeDtypeStruct((4, 0), dtype)
    assert _type(begin()(shape)) == _type(begin()(jnp.ones((4, 0), dtype)))


@settings(max_examples=30)
@given(decay=decays, mean=st.floats(-9, 9), x=st.floats(-9, 9))
def test_ema_lies_between(decay, mean, x):
    new = float(ema(jnp.array(mean), jnp.array(x), decay))
    assert min(mean, x) - 1e-5 <= new <= max(mean, x) + 1e-5
    np.testing.assert_allclose(new, decay * mean + (1 - decay) * x, atol=1e-5)


def test_ema_that_forgets_all_is_the_last():
    np.testing.assert_array_equal(ema(jnp.array([5.0]), jnp.array([3.0]), 0), [3.0])


@settings(max_examples=20)
@given(decay=decays, steps=st.integers(1, 30), x=st.floats(-9, 9))
def test_the_debiased_average_of_a_constant_is_the_constant(decay, steps, x):
    """That is the purpose of debiasing."""
    with jax.enable_x64(True):
        mean = jnp.zeros(())
        for _ in range(steps):
            mean = ema(mean, jnp.array(x), decay)
        found = mean / debias(decay, jnp.array(steps))
        np.testing.assert_allclose(found, x, rtol=1e-9, atol=1e-30)


@pytest.mark.parametrize("t", [jnp.array(1), jnp.array(1.0), jnp.array(1, jnp.int8)])
def test_debias_takes_any_count_in_32_bits(t):
    """In bfloat16 0.999 is 1, and the division would be by zero."""
    c = debias(0.999, t)
    assert c.dtype == jnp.float32
    np.testing.assert_allclose(c, 0.001, rtol=1e-4)


def test_debias_begins_at_nothing_and_ends_at_one():
    assert debias(0.9, jnp.array(0)) == 0
    assert debias(0.9, jnp.array(2**31 - 1)) == 1
    assert debias(0, jnp.array(1)) == 1


def test_debias_has_64_bits_where_there_are_any():
    with jax.enable_x64(True):
        c = debias(0.999, jnp.array(1, jnp.int32))
        assert c.dtype == jnp.float64
        np.testing.assert_allclose(c, 0.001, rtol=1e-12)


@given(st.complex_numbers(max_magnitude=1e3, allow_nan=False))
@settings(max_examples=30)
def test_abs_sq_is_the_square_of_the_length(z):
    found = abs_sq(jnp.array([z], jnp.complex64))
    assert found.dtype == jnp.float32
    np.testing.assert_allclose(found, [abs(z) ** 2], rtol=1e-5, atol=1e-30)


@pytest.mark.parametrize("dtype", [jnp.float16, jnp.bfloat16, jnp.float32])
def test_abs_sq_of_reals_keeps_their_dtype(dtype):
    found = abs_sq(jnp.array([-3.0, 0.5], dtype))
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, jnp.array([9.0, 0.25], dtype))


def test_abs_sq_has_the_slope_of_a_square():
    """Also at zero; JAX's gradient of a complex number is the conjugate."""
    z = jnp.array([0.0, 3.0 - 4.0j], jnp.complex64)
    slope = jax.grad(lambda z: abs_sq(z).sum())(z)
    np.testing.assert_array_equal(slope, 2 * z.conj())


def test_a_count_begins_at_zero():
    assert _type(zero_count()) == ((), jnp.int32)
    assert zero_count() == 0
    with jax.enable_x64(True):
        assert zero_count().dtype == jnp.int32


@counts
def test_increment_stops_at_the_top(dtype):
    """A negative count would restart every schedule."""
    top = jnp.iinfo(dtype).max
    for before, after in [(0, 1), (top - 1, top), (top, top)]:
        new = jax.jit(increment)(jnp.array(before, dtype))
        assert new.dtype == dtype
        assert int(new) == after


def test_increment_stops_at_the_top_of_64_bits():
    with jax.enable_x64(True):
        top = jnp.array(2**63 - 1)
        assert increment(top) == top
        assert increment(top - 1) == top


def test_increment_of_a_float_stays_a_float():
    assert _type(increment(jnp.array(2.0))) == ((), jnp.float32)
    assert increment(jnp.array(2.0)) == 3.0
