"""Random bits from a hash: uniform, independent, and the same on every mesh."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.numerics import dither, seeds
from steepest.numerics._dither import chance_of


@partial(jax.jit, static_argnums=1)
def _many(key, dtype):
    """Bits of 16 steps, for an array of 64 x 1024."""
    x = jnp.zeros((64, 1024))
    return jax.vmap(lambda seed: dither(seed, x, dtype))(seeds(key, 16))


DTYPES = [jnp.uint8, jnp.uint16]


@pytest.mark.parametrize("dtype", DTYPES)
def test_uniform(dtype):
    x = np.asarray(_many(jax.random.key(0), dtype), int)
    bits = jnp.iinfo(dtype).bits
    for shift in range(0, bits, 8):  # its low and its high bits
        counts = np.bincount((x.ravel() >> shift) & 255, minlength=256)
        chi = ((counts - x.size / 256) ** 2).sum() / (x.size / 256)
        assert abs(chi - 255) < 5 * np.sqrt(2 * 255)
    np.testing.assert_allclose(x.mean(axis=(1, 2)), (2**bits - 1) / 2, rtol=0.02)


SHIFTS = [(0, 0, 1), (0, 0, 2), (0, 0, 3), (0, 1, 0), (1, 0, 0), (1, 0, 1)]


@pytest.mark.parametrize("by", SHIFTS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_neighbours_and_steps_are_uncorrelated(by, dtype):
    top = 2 ** jnp.iinfo(dtype).bits
    x = (np.asarray(_many(jax.random.key(1), dtype), float) + 0.5) / top - 0.5
    other = np.roll(x, by, (0, 1, 2))
    assert abs((x * other).mean() * 12) < 5 / np.sqrt(x.size)


@pytest.mark.parametrize("dtype", [jnp.uint8, jnp.uint16])
def test_neighbours_share_a_hash(dtype):
    seed, x = seeds(jax.random.key(2), 1)[0], jnp.zeros((3, 5))
    each = 4 // jnp.dtype(dtype).itemsize
    short = dither(seed, jnp.zeros((3, -(-5 // each))), jnp.uint32)
    bytes_ = np.asarray(short).astype("<u4").view(jnp.dtype(dtype))
    np.testing.assert_array_equal(dither(seed, x, dtype), bytes_[:, :5])


def test_no_axes_and_no_elements():
    seed = seeds(jax.random.key(2), 1)[0]
    assert dither(seed, jnp.zeros(()), jnp.uint8).shape == ()
    assert dither(seed, jnp.zeros((0, 3)), jnp.uint8).shape == (0, 3)


def test_chances_of_numbers_are_uniform():
    """And those of neighbours that differ by a thousandth are independent."""
    z = jnp.exp(jnp.linspace(-9, 0, 9000))
    x = np.asarray(chance_of(z), float)
    counts = np.bincount((x * 20).astype(int), minlength=20)
    assert ((counts - 450) ** 2).sum() / 450 < 60
    assert abs(np.corrcoef(x[1:], x[:-1])[0, 1]) < 0.05
    assert x.min() > 0 and x.max() < 1
