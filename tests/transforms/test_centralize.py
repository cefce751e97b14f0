"""Gradients without their mean."""

import jax.numpy as jnp
import numpy as np
import pytest

import steepest


def _step(g):
    tx = steepest.centralize()
    return tx.update(g, tx.init(g))[0]


@pytest.mark.parametrize("shape", [(2, 3), (2, 3, 4), (1, 3)], ids=str)
def test_the_mean_over_all_axes_but_the_first_is_zero(shape):
    g = jnp.cos(jnp.arange(float(np.prod(shape)))).reshape(shape)
    rest = tuple(range(1, len(shape)))
    u = _step(g)
    np.testing.assert_allclose(jnp.mean(u, rest), jnp.zeros(shape[0]), atol=1e-6)
    np.testing.assert_allclose(u, _step(u), atol=1e-6)


@pytest.mark.parametrize("shape", [(), (3,), (0, 3), (3, 0)], ids=str)
def test_vectors_and_what_is_empty_stay(shape):
    g = jnp.ones(shape)
    np.testing.assert_array_equal(_step(g), g)


def test_half_precision_means_do_not_overflow():
    g = jnp.full((1, 4), 3e4, jnp.float16)
    np.testing.assert_array_equal(_step(g), jnp.zeros((1, 4)))
