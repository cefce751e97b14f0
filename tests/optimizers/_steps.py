"""A few steps of any transformation."""

import jax.numpy as jnp


def steps(tx, gs, p=None):
    """The updates for the gradients `gs`, in order, and the last state."""
    gs = [jnp.asarray(g, float) for g in gs]
    state, us = tx.init(gs[0]), []
    for g in gs:
        u, state = tx.update(g, state, p)
        us.append(u)
    return us, state
