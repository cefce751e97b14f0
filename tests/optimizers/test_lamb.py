"""LAMB."""

import jax.numpy as jnp
import numpy as np

import steepest

P, G = jnp.array([3.0, -4.0]), jnp.array([0.1, 7.0])


def test_each_leaf_moves_by_its_length():
    tx = steepest.lamb(0.1)
    p = {"a": P, "b": 10 * P}
    u, _ = tx.update({"a": G, "b": G}, tx.init(p), p)
    np.testing.assert_allclose(jnp.linalg.norm(u["a"]), 0.5, rtol=1e-6)
    np.testing.assert_allclose(u["b"], 10 * u["a"], rtol=1e-6)


def test_its_direction_is_that_of_adamw():
    u, w = (
        tx.update(G, tx.init(P), P)[0]
        for tx in (
            steepest.lamb(0.1, weight_decay=0.3),
            steepest.adamw(0.1, eps=1e-6, weight_decay=0.3),
        )
    )
    np.testing.assert_allclose(u / jnp.linalg.norm(u), w / jnp.linalg.norm(w), 1e-6)


def test_the_mask_is_that_of_the_decay():
    masked = steepest.lamb(0.1, weight_decay=0.5, mask=False)
    plain = steepest.lamb(0.1)
    u, v = (tx.update(G, tx.init(P), P)[0] for tx in (masked, plain))
    np.testing.assert_allclose(u, v, rtol=1e-6)
