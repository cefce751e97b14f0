"""Products of matrices have the precision that they promise."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.numerics import (
    between_bases,
    exact_gram,
    exact_product,
    rounded_gram,
    rounded_product,
    rounded_times,
    rounded_to_half,
    times_rounded,
)


@pytest.fixture
def on_a_gpu(monkeypatch):
    """The functions choose the products of a GPU. A CPU can compute them, too."""
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
def test_products_in_halves(on_a_gpu, scale):
    """The sums of products of float16 have the precision they promise."""
    rng = np.random.RandomState(0)
    x = rng.randn(40, 60) * scale
    x32 = jnp.asarray(x, jnp.float32)
    gram = exact_gram(x32)
    np.testing.assert_allclose(gram / scale**2, x @ x.T / scale**2, atol=3e-5)
    left, right = (np.linalg.qr(rng.randn(d, d))[0] for d in (40, 60))
    y = rng.randn(40, 60)  # of another size, and multiplied at the same time
    for l, r in ((left, right), (None, right), (left, None), (None, None)):
        sides = (None if q is None else jnp.asarray(q, jnp.float32) for q in (l, r))
        pair = [x32, jnp.asarray(y, jnp.float32)]
        rotated = between_bases(next(sides), pair, next(sides))
        for got, z, size in zip(rotated, (x, y), (scale, 1.0), strict=True):
            exact = (z if l is None else l @ z) @ (np.eye(60) if r is None else r)
            np.testing.assert_allclose(got / size, exact / size, atol=5e-3)
    np.testing.assert_allclose(
        exact_product(x32, x32.T) / scale**2, x @ x.T / scale**2, atol=2e-3
    )


@pytest.mark.parametrize("scale", [1e-2, 1.0, 32.0])
def test_products_of_known_size(on_a_gpu, scale):
    """Nothing is measured, and much smaller elements keep their digits."""
    rng = np.random.RandomState(0)
    x = rng.randn(40, 60) * scale
    left, right = (np.linalg.qr(rng.randn(d, d))[0] for d in (40, 60))
    sides = [jnp.asarray(q, jnp.float32) for q in (left, right)]
    f = lambda x: between_bases(sides[0], [x], sides[1], size=32.0)[0]
    got, x32 = f(jnp.asarray(x, jnp.float32)), jnp.asarray(x, jnp.float32)
    np.testing.assert_allclose(got / scale, left @ x @ right / scale, atol=5e-3)
    program = str(jax.make_jaxpr(f)(x32))
    assert "reduce_sum" not in program and "sqrt" not in program


def test_elements_that_float16_cannot_hold_are_limited(on_a_gpu):
    """All results are finite, also where all elements add up to one."""
    n = 64
    q, _ = np.linalg.qr(np.c_[np.ones(n), np.random.RandomState(0).randn(n, n - 1)])
    q = jnp.asarray(q, jnp.float32)
    most = 32.0 * 2**15 / n
    for huge in (1e5, 1e30, jnp.inf):
        (u,) = between_bases(q.T, [jnp.full((n, n), huge)], q, size=32.0)
        assert jnp.isfinite(u).all()
        np.testing.assert_allclose(abs(u[0, 0]), most * n, rtol=2e-3)
    (u,) = between_bases(q.T, [jnp.full((n, n), jnp.nan)], q, size=32.0)
    assert jnp.isnan(u).any()  # nothing is hidden


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
def test_rounded_matrices(on_a_gpu, scale):
    """Products of a rounded matrix are those of its value, not of the original."""
    rng = np.random.RandomState(0)
    x, a = rng.randn(40, 60) * scale, rng.randn(30, 40)
    rounded = rounded_to_half(jnp.asarray(x, jnp.float32))
    value = np.float64(rounded.matrix)
    assert rounded.values.dtype == jnp.float16
    np.testing.assert_allclose(value / scale, x / scale, rtol=2**-11, atol=1e-7)
    gram = rounded_gram(rounded) / scale**2
    np.testing.assert_allclose(gram, value @ value.T / scale**2, atol=5e-5)
    columns = rounded_gram(rounded.T) / scale**2
    np.testing.assert_allclose(columns, value.T @ value / scale**2, atol=5e-5)
    product = times_rounded(jnp.asarray(a, jnp.float32), rounded) / scale
    np.testing.assert_allclose(product, a @ value / scale, atol=3e-5)
    product = rounded_times(rounded.T, jnp.asarray(a.T, jnp.float32)) / scale
    np.testing.assert_allclose(product, value.T @ a.T / scale, atol=3e-5)
    square = rounded_product(rounded.T, rounded) / scale**2
    np.testing.assert_allclose(square, value.T @ value / scale**2, atol=5e-5)


def test_a_rounded_gram_keeps_small_eigenvalues(on_a_gpu):
    """The factors are rounded alike, so noise enters by its square."""
    x = np.random.RandomState(0).randn(40, 60)
    x[-1] = x[0] + x[1]
    rounded = rounded_to_half(jnp.asarray(x, jnp.float32))
    values = np.linalg.eigvalsh(np.float64(rounded_gram(rounded)))
    assert abs(values[0]) < 1e-6 * values.mean()


@pytest.mark.parametrize("name", ["exact_gram", "times_rounded"])
def test_no_conversion_to_float16_and_back(on_a_gpu, name):
    """XLA removes such a pair on GPUs, and the second half would be zero."""
    one = rounded_to_half(jnp.eye(4))
    f = exact_gram if name == "exact_gram" else lambda a: times_rounded(a, one)
    lines = jax.make_jaxpr(f)(jnp.eye(4)).jaxpr.eqns
    assert "reduce_precision" in {line.primitive.name for line in lines}
    half = [line for line in lines if line.invars[0].aval.dtype == jnp.float16]
    assert half
    assert "convert_element_type" not in {line.primitive.name for line in half}


def test_zeros_in_halves(on_a_gpu):
    x = jnp.zeros((3, 4))
    assert not exact_gram(x).any()
    assert not rounded_gram(rounded_to_half(x)).any()
    assert not between_bases(None, [x], jnp.eye(4))[0].any()
