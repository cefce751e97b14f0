"""Initial values of state, and products."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.check import fraction
from steepest.core import UnusualValueWarning
from steepest.numerics import (
    copy_of,
    inner,
    number_or_schedule,
    quotient,
    scalar,
    wide_moment,
)


def test_a_copy_is_another_array():
    p = jnp.ones(3, jnp.bfloat16)
    q = copy_of(p)
    p.delete()
    assert q.tolist() == [1, 1, 1] and q.dtype == jnp.bfloat16
    assert copy_of(jax.ShapeDtypeStruct((2,), jnp.float16)).dtype == jnp.float16


@pytest.mark.parametrize(
    "dtype, kept",
    [("float16", "float32"), ("float32", "float32"), ("complex64", "complex64")],
)
def test_sums_are_wide(dtype, kept):
    assert wide_moment()(jnp.ones(2, dtype)).dtype == kept
    assert wide_moment("float16")(jnp.ones(2, dtype)).dtype == "float16"


def test_a_schedule_as_it_is_and_a_number_checked():
    schedule = lambda t: t / 4
    assert number_or_schedule(fraction, "me", b3=0.5) == 0.5
    assert number_or_schedule(fraction, "me", b3=schedule) is schedule
    with pytest.warns(UnusualValueWarning, match="me: b3 is 2, but is usually"):
        number_or_schedule(fraction, "me", b3=2)
    assert scalar(2)().dtype == jnp.float32


def test_products_and_quotients():
    assert inner(jnp.array([1 + 1j]), jnp.array([1 + 1j])) == 2
    assert inner(jnp.array([1.0, 2.0]), jnp.array([3.0, 4.0])) == 11
    x, y = jnp.array([1.0, 1.0]), jnp.array([0.0, 2.0])
    assert quotient(x, y).tolist() == [0, 0.5]
    slopes = jax.grad(lambda x, y: quotient(x, y).sum(), (0, 1))(x, y)
    np.testing.assert_allclose(slopes, [[0, 0.5], [0, -0.25]])
