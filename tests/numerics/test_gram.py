"""The Gram form is the same function, and half precision stays within its bounds."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest import numerics
from steepest.numerics import gram_newton_schulz, newton_schulz, polynomials

from .test_polynomials import BANDS

EXPRESS = polynomials("x", "polar_express")
orthogonal = jax.jit(numerics.orthogonal, static_argnums=1, static_argnames="dtype")
halves = pytest.mark.parametrize("dtype", ["float16", "bfloat16"])


def _matrix(*shape, key=0):
    return np.random.default_rng(key).standard_normal(shape)


def _values(x):
    return np.linalg.svd(np.asarray(x, "float64"), compute_uv=False)


@pytest.mark.parametrize("name, steps", [("polar_express", 5), ("dion", 9)])
def test_it_is_the_same_function(name, steps):
    """In float64, with one restart and with several."""
    rows = polynomials("x", name, steps)
    with jax.enable_x64():
        x = jnp.asarray(_matrix(4, 7) / 8)
        gram, plain = jax.jit(
            lambda x: (gram_newton_schulz(x, rows), newton_schulz(x, rows))
        )(x)
        np.testing.assert_allclose(gram, plain, rtol=0, atol=1e-10)
        found = orthogonal(x, rows, eps=0.0)
        assert found.dtype == "float64"
    u, s, v = np.linalg.svd(x, full_matrices=False)
    s = s / np.linalg.norm(s)
    for a, b, c in rows:
        s = a * s + b * s**3 + c * s**5
    np.testing.assert_allclose(found, (u * s) @ v, atol=1e-10)


def test_a_tall_matrix_is_transposed():
    x = jnp.asarray(_matrix(4, 7), "float32")
    found = orthogonal(x.T, EXPRESS)
    np.testing.assert_allclose(found.T, orthogonal(x, EXPRESS), atol=1e-6)


def _hard(shape):
    """Difficult matrices for half precision."""
    m, n = shape
    u, _, v = np.linalg.svd(_matrix(m, n), full_matrices=False)
    yield "one value", np.ones(shape)
    # Here rounding increases normalized elements the most, to a norm above one.
    yield "some rows", np.ones(shape) * (np.arange(m) < m - 3)[:, None]
    yield "rank one", u[:, :1] @ v[:1]
    yield "nearly", u[:, :1] @ v[:1] + 1e-4 * _matrix(m, n, key=1)
    yield "over two decades", (u * np.geomspace(1, 1e-2, m)) @ v
    yield "orthogonal", u @ v


@halves
@pytest.mark.parametrize("name", ["polar_express", "cans", "dion", "standard"])
@pytest.mark.parametrize("shape", [(24, 72), (24, 24)], ids=["wide", "square"])
def test_half_precision_stays_in_the_band(name, dtype, shape):
    rows = polynomials("x", name)
    names, xs = zip(*_hard(shape), strict=True)
    many = jax.vmap(lambda x: numerics.orthogonal(x, rows, dtype=dtype))
    found = jax.jit(many)(jnp.asarray(np.stack(xs), "float32"))
    assert found.dtype == "float32"
    low, high = BANDS[name][1]
    slack = {"float16": 0.03, "bfloat16": 0.17}[dtype]
    for case, y in zip(names, found, strict=True):
        assert _values(y).max() < high + slack, case
        if case in ("over two decades", "orthogonal"):
            assert _values(y).min() > low - slack, case


@pytest.mark.parametrize("dtype", [None, "float16", "bfloat16"])
def test_any_size_will_do(dtype):
    x = jnp.asarray(_matrix(3, 8), "float32")
    want = orthogonal(x, EXPRESS, dtype=dtype, eps=0.0)
    for size in (1e-36, 1e-30, 1e30, 1e37):
        found = orthogonal(size * x, EXPRESS, dtype=dtype, eps=0.0)
        np.testing.assert_allclose(found, want, atol=0.02)
    assert np.all(orthogonal(0 * x, EXPRESS, dtype=dtype, eps=0.0) == 0)


def test_a_complex_matrix_is_computed_as_it_is():
    x = jnp.asarray(_matrix(3, 8) + 1j * _matrix(3, 8, key=1), "complex64")
    found = orthogonal(x, polynomials("x", "deepseek"), dtype="float16")
    np.testing.assert_allclose(found @ found.conj().T, np.eye(3), atol=0.01)


def test_no_elements():
    assert orthogonal(jnp.zeros((0, 3)), EXPRESS).shape == (0, 3)


@pytest.mark.parametrize("backend", ["cpu", "gpu", "tpu", "another"])
def test_the_fast_dtype_of_each_backend(backend, monkeypatch):
    monkeypatch.setattr(jax, "default_backend", lambda: backend)
    quick = {"gpu": "float16", "tpu": "bfloat16"}.get(backend, "float32")
    assert numerics.quick_dtype(jnp.ones((2, 2))) == jnp.dtype(quick)
    assert numerics.quick_dtype(jnp.ones((2, 2), "complex64")) == "complex64"
