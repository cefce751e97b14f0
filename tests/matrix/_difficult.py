"""Gradients of matrices that are difficult: zero, tiny, huge, of rank one."""

import jax
import jax.numpy as jnp
import numpy as np

DTYPES = ("float16", "bfloat16", "float32", "float64")
SHAPE = (6, 4)


def gradients(dtype):
    """By name, in a dtype."""
    some = jax.random.normal(jax.random.key(1), SHAPE)
    most = min(1e30, float(jnp.finfo(dtype).max) / 8)
    gradients = {
        "zero": 0 * some,
        "rank one": some[:, :1] * some[:1],
        "tiny": 1e-30 * some,
        "huge": jnp.clip(some * most, -most, most),
        "one huge": some.at[1, 2].set(most),
    }
    return {name: g.astype(dtype) for name, g in gradients.items()}


def stays_finite(tx, dtype):
    """Check 50 steps with each: the updates and the state are finite."""
    with jax.enable_x64(dtype == "float64"):
        p = {"kernel": jnp.ones(SHAPE, dtype)}

        @jax.jit
        def run(g):
            def step(state, t):
                u, state = tx.update({"kernel": g}, state, p)
                return state, (u, state)

            return jax.lax.scan(step, tx.init(p), jnp.arange(50))[1]

        for name, g in gradients(dtype).items():
            for x in jax.tree.leaves(run(g)):
                assert np.isfinite(np.asarray(x, float)).all(), name
