"""Symmetric products, by XLA and by kernels that are interpreted."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from benchmarks.abstract_gpu import abstract_gpu
from steepest.numerics import (
    _kernels,
    _symmetric as symmetric,
    columns_sum,
    rows_sum,
    WeightedSum,
)
from steepest.numerics._matmul import Rounded
from steepest.numerics._symmetric import (
    adds_in_triangle,
    in_triangle,
    plus_gram,
    rows_gram,
    symmetric_gram,
    symmetric_polynomial,
    symmetric_product,
    Tiles,
)

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
    for name in ("_SHORT_SUMS", "_POLYNOMIAL", "_FLOAT32", "_ADDED"):
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


@pytest.mark.parametrize("shape", [(96, 32), (32, 96)])
def test_a_gram_matrix_is_added_in_place(kernels, shape):
    assert adds_in_triangle(jnp.float16, 96, 32)
    assert not adds_in_triangle(jnp.float16, 80, 32)  # tiles would overlap
    assert not adds_in_triangle(jnp.float32, 96, 32)
    x, old = _matrix(*shape), _matrix(96, 96, dtype="float32")
    old = old + old.T
    new = plus_gram(old, jnp.array([0.9, 0.3]), x)
    wide = np.asarray(x if shape[0] == 96 else x.T, float)
    _close(new, 0.9 * np.asarray(old, float) + 0.3 * wide @ wide.T, 20)


@pytest.mark.parametrize("make", [rows_sum, columns_sum])
@pytest.mark.parametrize("shape", [(96, 64), (64, 96), (64, 64), (96, 80)])
def test_sums_are_those_of_xla(kernels, make, shape):
    """For leaves of one matrix and of several, with and without a kernel."""
    xs = jnp.stack([_matrix(*shape), 2 * _matrix(*shape)])
    side = shape[0] if make is rows_sum else shape[1]
    one = _matrix(side, side, dtype="float32")
    olds = jnp.stack([one + one.T, one @ one.T])
    scales = jnp.array([0.5, 2.0])
    sums = jax.vmap(lambda x, s: make(0.9, jnp.array(0.1), Rounded(x, s)))(xs, scales)
    assert isinstance(sums, WeightedSum) == (80 in shape)
    wide = np.asarray(xs, float) * np.array([0.5, 2.0])[:, None, None]
    wide = wide if make is rows_sum else wide.swapaxes(1, 2)
    exact = 0.9 * np.asarray(olds, float) + 0.1 * wide @ wide.swapaxes(1, 2)
    _close(sums.part(lambda y: y).after(olds), exact, 18)
    _close(sums.part(lambda y: y[1]).after(olds[1]), exact[1], 18)
