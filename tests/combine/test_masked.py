"""What masks are for."""

import jax
import jax.numpy as jnp
import numpy as np

import steepest

P = {"w": jnp.full((2, 2), 4.0), "b": jnp.full((2,), 4.0)}


def test_weights_decay_and_biases_do_not():
    tx = steepest.adamw(0.1, weight_decay=0.5, mask={"w": True, "b": False})
    zero = jax.tree.map(jnp.zeros_like, P)
    u, _ = tx.update(zero, tx.init(P), P)
    np.testing.assert_allclose(u["w"], -0.1 * 0.5 * P["w"], rtol=1e-6)
    assert not u["b"].any()


def test_two_masks_share_the_tree():
    """Two optimizers, each on its own leaves, in one pass."""
    tx = steepest.chain(
        steepest.masked(steepest.sgd(1.0), {"w": True, "b": False}),
        steepest.masked(steepest.lion(0.5, weight_decay=0.0), {"w": False, "b": True}),
    )
    u, _ = tx.update(P, tx.init(P), P)
    np.testing.assert_array_equal(u["w"], -P["w"])
    np.testing.assert_array_equal(u["b"], [-0.5, -0.5])


def test_with_everything_masked_nothing_changes():
    tx = steepest.masked(steepest.adam(0.1), False)
    u, state = tx.update(P, tx.init(P), P)
    assert u["w"] is P["w"]
    assert [x.shape for x in jax.tree.leaves(state)] == [()]
