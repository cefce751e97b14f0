"""The polar factor, compared with the SVD."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest import numerics
from steepest.numerics import COEFFICIENTS, PRECONDITIONINGS
from steepest.numerics._polar import frobenius

names = pytest.mark.parametrize("name", list(PRECONDITIONINGS))
polar = jax.jit(numerics.polar, static_argnums=(2, 3))
DION = jnp.array(COEFFICIENTS["dion"])
# Many steps of Halley's polynomial converge; the other polynomials only come close.
EXACT = jnp.array([(3.4445, -4.775, 2.0315)] * 4 + [(1.875, -1.25, 0.375)] * 6)


def _exact(x):
    u, _, v = np.linalg.svd(np.asarray(x), full_matrices=False)
    return u @ v


def _matrix(*shape, dtype="float32"):
    return jax.random.normal(jax.random.key(0), shape, dtype)


@names
@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_it_is_the_polar_factor(name, dtype):
    for shape in [(3, 4), (4, 3)]:
        x = _matrix(*shape, dtype=dtype)
        found = polar(x, EXACT, 10, name)
        assert found.dtype == x.dtype
        if name == "aol":  # this one changes the singular vectors a little
            square = found @ found.conj().T if shape[0] <= shape[1] else None
            if square is not None:
                np.testing.assert_allclose(square, np.eye(shape[0]), atol=1e-3)
        else:
            np.testing.assert_allclose(found, _exact(x), atol=1e-3)


@pytest.mark.parametrize("coefficients", list(COEFFICIENTS))
def test_singular_values_come_near_one(coefficients):
    found = polar(_matrix(4, 6), jnp.array(COEFFICIENTS[coefficients]))
    values = np.linalg.svd(np.asarray(found), compute_uv=False)
    assert values.min() > 0.6 and values.max() < 1.3


@names
def test_any_size_will_do(name):
    """Also if the squares would overflow or underflow without scaling."""
    x = _matrix(3, 4)
    want = polar(x, DION, 5, name, 0.0)
    for size in (1e-30, 1e-15, 1e15, 1e30):
        found = polar(size * x, DION, 5, name, 0.0)
        np.testing.assert_allclose(found, want, rtol=1e-3, atol=1e-4)


@names
def test_zero_stays_zero_and_has_slopes(name):
    zero = jnp.zeros((2, 3))
    total = lambda x, eps: jnp.sum(numerics.polar(x, DION, 5, name, eps))
    both = jax.jit(jax.value_and_grad(total))
    for eps in (0.0, 1e-8):
        value, slope = both(zero, eps)
        assert value == 0
        assert np.isfinite(slope).all()


@names
def test_slopes_are_those_of_the_function(name):
    with jax.enable_x64():
        x, v, rows = (np.asarray(y, "float64") for y in (*_pair(), DION[:2]))
        f = jax.jit(lambda t: numerics.polar(x + t * v, jnp.asarray(rows), 5, name))
        slope = jax.jvp(f, (0.0,), (1.0,))[1]
        np.testing.assert_allclose(slope, (f(1e-6) - f(-1e-6)) / 2e-6, rtol=1e-5)


def _pair():
    return _matrix(2, 3), _matrix(3, 2).T


def test_how_many_steps():
    """One polynomial several times, or each once; the number may be traced."""
    x, one = _matrix(3, 4), DION[0]
    twice = polar(x, jnp.stack([one, one]))
    np.testing.assert_allclose(polar(x, one, 2), twice, rtol=1e-5)
    traced = jax.jit(lambda steps: numerics.polar(x, one, steps))(2)
    np.testing.assert_allclose(traced, twice, rtol=1e-5)


@names
def test_no_elements(name):
    assert polar(jnp.zeros((0, 3)), DION, 5, name).shape == (0, 3)


@pytest.mark.parametrize("size", [1e-20, 1.0, 1e30])
def test_one_element(size):
    """XLA may not reorder the product of a number and a scale with itself."""
    x = jax.jit(lambda x: frobenius(x, 0.0)[0])(jnp.full((1, 1), size))
    np.testing.assert_allclose(x, 1, rtol=1e-6)
