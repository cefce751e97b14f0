"""Symmetric products, by XLA and by kernels that are interpreted."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.numerics import _kernels, _symmetric as symmetric
from steepest.numerics._symmetric import (
    in_triangle,
    rows_gram,
    symmetric_gram,
    symmetric_polynomial,
    symmetric_product,
    Tiles,
)

from ..abstract_gpu import abstract_gpu

SMALL = Tiles(32, 32, 32, 1, 1)


@pytest.fixture
def kernels(monkeypatch):
    """Small matrices in kernels, interpreted."""
    has = lambda: True
    run = lambda kernel, plain, *arrays: kernel(*arrays)
    monkeypatch.setattr(symmetric, "has_kernels", has)
    monkeypatch.setattr(symmetric, "on_cuda", run)
    interpreted = partial(in_triangle, interpret=True)
    monkeypatch.setattr(symmetric, "in_triangle", interpreted)
    monkeypatch.setattr(symmetric, "_LEAST", 32)
    monkeypatch.setattr(symmetric, "_LONG_SUMS", Tiles(32, 64, 32, 1, 1))
    for name in ("_SHORT_SUMS", "_POLYNOMIAL", "_FLOAT32"):
        monkeypatch.setattr(symmetric, name, SMALL)


def _matrix(*shape, dtype="float16"):
    return jnp.asarray(np.random.default_rng(0).standard_normal(shape), dtype)


def _close(x, y, bits=11):
    y = np.asarray(y, float)
    np.testing.assert_allclose(x, y, rtol=0, atol=2.0**-bits * np.abs(y).max())


@pytest.mark.parametrize("shape", [(80, 128), (128, 80), (64, 64)])
@pytest.mark.parametrize("long", [64, 4096])
def test_a_gram_matrix(kernels, monkeypatch, shape, long):
    """Sides that tiles divide, and one that they do not; square and wide tiles."""
    monkeypatch.setattr(symmetric, "_LONG", long)
    x = _matrix(*shape)
    wide = np.asarray(x if shape[0] <= shape[1] else x.T, float)
    gram = symmetric_gram(x)
    assert gram.dtype == x.dtype
    _close(gram, wide @ wide.T)
    stack = jax.vmap(symmetric_gram)(jnp.stack([x, 2 * x]))
    np.testing.assert_array_equal(stack[1], 4 * gram)


def test_other_products(kernels):
    gram = symmetric_gram(_matrix(96, 128) / 16)
    exact = np.asarray(gram, float)
    _close(symmetric_product(gram, gram), exact @ exact)
    square = 2 * np.eye(96) - 1.5 * exact + 0.5 * exact @ exact
    _close(symmetric_polynomial(gram, (2.0, -1.5, 0.5)), square)
    x = _matrix(96, 128)
    exact = np.asarray(x, float)
    assert rows_gram(x).dtype == jnp.float32
    _close(rows_gram(x), exact @ exact.T, 20)


def test_without_a_gpu_xla_multiplies():
    """Also where a GPU is expected: the platform decides when a program is lowered."""
    assert not _kernels.has_kernels()
    x = _matrix(64, 64)
    text = jax.jit(symmetric_gram).lower(x).as_text()
    assert "dot_general" in text and "custom_call" not in text


def test_kernels_are_lowered_for_a_gpu_and_have_derivatives(monkeypatch):
    monkeypatch.setattr(symmetric, "has_kernels", lambda: True)
    traced = jax.jit(jax.vmap(symmetric_gram)).trace(_matrix(2, 1600, 64))
    assert "dot_general" in traced.lower().as_text()
    with abstract_gpu():
        traced = jax.jit(jax.vmap(symmetric_gram)).trace(_matrix(2, 1600, 1664))
        text = traced.lower(lowering_platforms=("cuda",)).as_text()
    assert "in_triangle" in text and "stablehlo.dot_general" not in text
    x = _matrix(1024, 1024)
    _, slope = jax.jvp(symmetric_gram, (x,), (x,))
    _close(slope, 2 * np.asarray(x, float) @ np.asarray(x, float).T, 9)
