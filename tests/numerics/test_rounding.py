"""Stochastic rounding."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steepest
from steepest.numerics import rounded

HALVES = (jnp.bfloat16, jnp.float16)


@pytest.mark.parametrize("dtype", HALVES, ids=["bfloat16", "float16"])
def test_the_mean_is_right_and_the_neighbours_near(dtype):
    x = jnp.linspace(-3, 3, 7) + 1e-4
    many = jnp.broadcast_to(x, (4000, 7))
    found = np.asarray(rounded(many, dtype, jax.random.key(0)), np.float64)
    gap = np.abs(np.asarray(x)) * float(jnp.finfo(dtype).eps) + 1e-6
    assert (np.abs(found - np.asarray(x)) <= gap).all()
    np.testing.assert_allclose(found.mean(0), x, atol=gap.max() / 15)


@pytest.mark.parametrize("dtype", HALVES, ids=["bfloat16", "float16"])
def test_what_has_no_neighbours_stays(dtype):
    top = float(jnp.finfo(dtype).max)
    x = jnp.array([0, 1, -2, top, jnp.inf, -jnp.inf, jnp.nan], jnp.float32)
    found = rounded(x, dtype, jax.random.key(1))
    np.testing.assert_array_equal(np.asarray(found, np.float32), x)


def test_small_steps_add_up():
    """Rounding to nearest, a thousand steps of 0.001 leave 1 unchanged in bfloat16."""
    p = {"w": jnp.ones(64, jnp.bfloat16), "v": jnp.ones(2), "none": None}
    u = jax.tree.map(lambda x: jnp.full(x.shape, -1e-3, x.dtype), p)
    take = lambda p, k: (steepest.apply_updates(p, u, key=k), None)
    end, _ = jax.lax.scan(take, p, jax.random.split(jax.random.key(2), 500))
    np.testing.assert_allclose(np.mean(np.asarray(end["w"], float)), 0.5, atol=0.02)
    np.testing.assert_allclose(end["v"], 0.5, 1e-4)
    assert steepest.apply_updates(p, u)["w"][0] == 1
    assert end["w"].dtype == jnp.bfloat16
    assert end["none"] is None
