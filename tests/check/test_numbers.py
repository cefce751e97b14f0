"""Numbers: what they are converted to, their dtypes, and which are errors."""

import math

import jax
import jax.numpy as jnp
import jaxtyping
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import steepest
from steepest.check import (
    amount,
    finite,
    fraction,
    inside,
    measurable,
    negative,
    nonnegative,
    number,
    period,
    positive,
    real,
    whole,
)
from steepest.core import UnusualValueWarning

inf, nan = math.inf, math.nan
dtypes = pytest.mark.parametrize("dtype", [jnp.float16, jnp.bfloat16, jnp.float32])

# The check, its message, and the values that it accepts, warns about and rejects.
CHECKS = [
    (real, "that is not NaN", [-inf, -1, 0, 2.5, inf], [], [nan]),
    (fraction, "in [0, 1]", [0, 0.0, 0.999, 1], [-1e-9, 1.5], [inf, nan]),
    (inside, "above 0 and below 1", [1e-9, 0.5], [0, 1, -1, 1.5], [inf, nan]),
    (finite, "that is finite", [-3, 0, 1e300], [], [-inf, inf, nan]),
    (whole, "that is whole and at least 0", [0, 3, 2.0], [], [-1, 0.5, nan, inf]),
    (nonnegative, "of at least 0", [0, 1e-30, 3, inf], [-1e-9, -1], [-inf, nan]),
    (positive, "above 0", [1e-30, 3, inf], [0, 0.0, -1], [-inf, nan]),
    (negative, "below 0", [-1e-30, -3, -inf], [0, 0.0, 1], [nan]),
    (amount, "of at least 0 and below infinity", [0, 3], [-1, inf], [-inf, nan]),
    (measurable, "above 0 and below infinity", [1e-9, 3], [0, -1, inf], [-inf, nan]),
    (
        period,
        "that is whole and at least 1",
        [1, 7, 2.0],
        [],
        [0, -1, 0.5, 1.5, nan, inf],
    ),
]
checks = pytest.mark.parametrize("check, wanted", [row[:2] for row in CHECKS])
good = [(check, x) for check, _, right, _, _ in CHECKS for x in right]
odd = [(check, wanted, x) for check, wanted, _, odd, _ in CHECKS for x in odd]
bad = [(check, wanted, x) for check, wanted, _, _, wrong in CHECKS for x in wrong]


@pytest.fixture
def without_types():
    """Turn off runtime type checks, as for a user; otherwise they would raise first."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@settings(max_examples=30)
@given(st.integers() | st.floats())
def test_python_numbers_are_returned_unchanged(x):
    assert number(x) is x


@pytest.mark.parametrize(
    "x, kind",
    [
        (np.float32(0.5), float),
        (np.float64(0.5), float),
        (np.int64(3), int),
        (np.array(0.5), float),
    ],
)
def test_numpy_numbers_become_python_numbers(x, kind):
    """They have a fixed dtype, and would force it on arrays they are combined with."""
    assert type(number(x)) is kind
    assert number(x) == x


@dtypes
def test_an_array_takes_the_dtype_of_the_other_operand(dtype):
    """Under strict promotion only a weakly typed number does that."""
    y = number(jnp.array(0.5)) * jnp.ones(2, dtype)
    assert y.dtype == dtype
    np.testing.assert_array_equal(y, jnp.full(2, 0.5, dtype))


@dtypes
def test_a_traced_array_takes_the_dtype_of_the_other_operand(dtype):
    y = jax.jit(lambda b, x: number(b) * x)(jnp.array(0.5), jnp.ones(2, dtype))
    assert y.dtype == dtype
    np.testing.assert_array_equal(y, jnp.full(2, 0.5, dtype))


@pytest.mark.parametrize("dtype", [jnp.int8, jnp.int32, jnp.float16])
def test_an_integer_stays_an_integer(dtype):
    n = number(jnp.array(3, jnp.int16))
    assert jnp.issubdtype(n.dtype, jnp.integer)
    assert (n + jnp.ones(2, dtype)).dtype == dtype


def test_a_number_combines_with_float64():
    b = jnp.array(0.5, jnp.float32)
    with jax.enable_x64(True):
        y = number(b) * jnp.ones(2, jnp.float64)
        assert y.dtype == jnp.float64
        assert float(number(jnp.array(0.1))) == 0.1  # with full precision


def test_a_number_may_be_mapped_over():
    def product(b):
        return number(b) * jnp.ones(3, jnp.bfloat16)

    found = jax.vmap(product)(jnp.array([1.0, 2.0]))
    np.testing.assert_array_equal(found, jnp.array([[1.0] * 3, [2.0] * 3]))
    assert found.dtype == jnp.bfloat16


def test_a_number_may_be_differentiated():
    assert jax.grad(lambda x: number(x) ** 2)(3.0) == 6.0


@pytest.mark.parametrize("check, x", good)
def test_a_number_in_range_is_returned(check, x):
    assert check("who", name=x) == [x]


@pytest.mark.parametrize("check, wanted, x", bad)
def test_a_number_out_of_range_is_refused_by_name(check, wanted, x):
    with pytest.raises(ValueError) as caught:
        check("scale_by_x", first=jnp.array(x), second=x)
    said = f"scale_by_x: second is {x}, expected a number {wanted}."
    assert str(caught.value) == said


@pytest.mark.parametrize("check, wanted, x", odd)
def test_an_unusual_number_is_used_with_a_warning(check, wanted, x):
    with pytest.warns(UnusualValueWarning) as caught:
        assert check("scale_by_x", first=jnp.array(x), second=x)[1] == x
    said = f"scale_by_x: second is {x}, but is usually a number {wanted}."
    assert [str(w.message) for w in caught] == [f"{said} The value is used."]


@pytest.mark.parametrize("check, wanted, x", [*odd, *bad])
def test_an_unusual_number_is_refused_if_it_cannot_be_used(check, wanted, x):
    with pytest.raises(ValueError) as caught:
        check.must("scale_by_x", first=jnp.array(x), second=x)
    said = f"scale_by_x: second is {x}, expected a number {wanted}."
    assert str(caught.value) == said


def test_the_warning_points_to_the_users_line(as_users_do):
    with pytest.warns(UnusualValueWarning, match=r"b1 is 2\.0") as caught:
        steepest.adamw(0.1, b1=2.0)
    wrapped = "_typechecker"  # in tests, it wraps every function of the library
    assert all(w.filename == __file__ or wrapped in w.filename for w in caught)


@settings(max_examples=30)
@given(st.floats(allow_nan=False))
def test_a_fraction_is_in_the_interval(x):
    if 0 <= x <= 1:
        assert fraction.must("who", b=x) == [x]
    else:
        with pytest.raises(ValueError, match="who: b is"):
            fraction.must("who", b=x)


@checks
@pytest.mark.parametrize("x", [-2.5, nan])
def test_an_array_is_not_checked(check, wanted, x):
    """Its value may be unknown, as when it is traced."""
    del wanted
    (known,) = check("who", name=jnp.array(x))
    traced = jax.jit(lambda x: check("who", name=x)[0])(x)
    np.testing.assert_array_equal([known, traced], [x, x])


@checks
@pytest.mark.parametrize("shape", [(2,), (1,), (0,), (1, 1)])
def test_an_array_with_a_shape_is_refused(check, wanted, shape):
    with pytest.raises(ValueError) as caught:
        check("scale_by_x", b1=jnp.zeros(shape))
    said = f"scale_by_x: b1 has shape {shape}, expected one number {wanted}."
    assert str(caught.value) == said


@checks
def test_a_traced_array_with_a_shape_is_refused(check, wanted):
    del wanted
    with pytest.raises(ValueError, match=r"scale_by_x: b1 has shape \(2,\)"):
        jax.eval_shape(lambda x: check("scale_by_x", b1=x), jnp.zeros(2))


@checks
@pytest.mark.parametrize("x", ["0.9", None, 1j])
def test_values_that_are_not_numbers_are_refused(check, wanted, x, without_types):
    with pytest.raises(TypeError) as caught:
        check("scale_by_x", b1=x)
    kind = type(x).__name__
    said = f"scale_by_x: b1 is a {kind}, expected a number {wanted}."
    assert str(caught.value) == said


@checks
def test_several_numbers_keep_their_order(check, wanted):
    del wanted
    a, b = check("who", a=jnp.array(1.0), b=jnp.array(2.0))
    assert (float(a), float(b)) == (1.0, 2.0)


def test_periods_are_whole_and_can_be_reached_by_a_count():
    found = period("who", a=2.0, b=10**12)
    assert found == [2, 2**31 - 1] and all(isinstance(x, int) for x in found)
