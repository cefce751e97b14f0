"""Products of matrices have the precision that they promise."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.numerics import between_bases, exact_gram, exact_product


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
    sides = jnp.asarray(left, jnp.float32), jnp.asarray(right, jnp.float32)
    both = between_bases(sides[0], x32, sides[1]) / scale
    np.testing.assert_allclose(both, left @ x @ right / scale, atol=5e-3)
    one = between_bases(None, x32, sides[1]) / scale
    np.testing.assert_allclose(one, x @ right / scale, atol=5e-3)
    np.testing.assert_allclose(
        exact_product(x32, x32.T) / scale**2, x @ x.T / scale**2, atol=2e-3
    )


def test_zeros_in_halves(on_a_gpu):
    x = jnp.zeros((3, 4))
    assert not exact_gram(x).any()
    assert not between_bases(None, x, jnp.eye(4)).any()
