"""The kernel for inverse Cholesky factors, interpreted."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.numerics import _eigenbasis
from steepest.numerics._eigenbasis import inverse_cholesky
from steepest.numerics._small_cholesky import SIDES, small_inverse_cholesky


def _squares(n, steep=0.0):
    rng = np.random.default_rng(0)
    scale = 10 ** -np.linspace(0, steep, n)
    x = scale[:, None] * rng.standard_normal((n, 4 * n)) / (4 * n) ** 0.5
    return x @ x.T


@pytest.mark.parametrize("n", SIDES)
@pytest.mark.parametrize("steep", [0.0, 3.0])
def test_the_inverse_factor(n, steep):
    a = _squares(n, steep)
    exact = np.linalg.inv(np.linalg.cholesky(a))
    stack = jnp.asarray(np.stack([np.eye(n), a]), "float32")
    run = lambda a: small_inverse_cholesky(a, interpret=True)
    one, inverse = jax.vmap(run)(stack)
    np.testing.assert_allclose(one, np.eye(n))
    size = np.abs(exact).max(axis=1, keepdims=True)
    np.testing.assert_allclose(inverse / size, exact / size, atol=1e-4)


def test_a_matrix_that_is_not_positive_gives_nan():
    a = jnp.eye(64).at[3, 3].set(-1.0)
    assert jnp.isnan(small_inverse_cholesky(a, interpret=True)).any()


def test_blocks_of_a_larger_matrix(monkeypatch):
    """Blocks of 128 and 64 use the kernel, others do not."""
    run = lambda kernel, plain, a: kernel(a, interpret=True)
    monkeypatch.setattr(_eigenbasis, "has_kernels", lambda: True)
    monkeypatch.setattr(_eigenbasis, "on_cuda", run)
    for n in (320, 300):
        a = _squares(n)
        inverse = inverse_cholesky(jnp.asarray(a, "float32"))
        exact = np.linalg.inv(np.linalg.cholesky(a))
        np.testing.assert_allclose(inverse, exact, atol=1e-5)
