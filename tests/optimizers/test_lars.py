"""LARS."""

import jax.numpy as jnp
import numpy as np
import pytest

import steepest

P, G = {"w": jnp.array([3.0, -4.0]), "b": jnp.zeros(2)}, jnp.array([30.0, 40.0])
GS = {"w": G, "b": G}


def _step(**options):
    tx = steepest.lars(1.0, **options)
    return tx.update(GS, tx.init(P), P)[0]


def test_the_step_is_a_share_of_the_param():
    u = _step(trust_coefficient=0.01)
    np.testing.assert_allclose(u["w"], -0.05 * G / 50, rtol=1e-6)
    np.testing.assert_allclose(u["b"], -G, rtol=1e-6)  # zero norm, no ratio


def test_decay_counts_as_gradient():
    """So it changes the direction of the step, but not its length."""
    u = _step(weight_decay=10.0, weight_decay_mask={"w": True, "b": False})
    d = G + 10 * P["w"]
    np.testing.assert_allclose(u["w"], -5e-3 * d / jnp.linalg.norm(d), rtol=1e-5)
    np.testing.assert_allclose(u["b"], -G, rtol=1e-6)


@pytest.mark.parametrize("mask", [None, True])
def test_no_mask_is_all(mask):
    """In Optax, `None` for the ratio is an error."""
    u = _step(trust_ratio_mask=mask, weight_decay_mask=mask)
    np.testing.assert_allclose(u["w"], -1e-4 * G, rtol=1e-5)


def test_leaves_outside_the_mask_move_by_the_gradient():
    u = _step(trust_ratio_mask=lambda p: {"w": False, "b": True})
    np.testing.assert_allclose(u["w"], -G, rtol=1e-6)


def test_momentum_comes_after_the_rate():
    """So a new learning rate does not affect past gradients."""
    tx = steepest.lars(lambda count: 1.0 - count.astype(float), momentum=0.5)
    state = tx.init(P)
    u, state = tx.update(GS, state, P)
    v, state = tx.update(GS, state, P)
    np.testing.assert_allclose(v["w"], 0.5 * u["w"], rtol=1e-6)
