"""Nothing a gradient may be makes anything infinite or NaN."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ..zoo import everyone, params, Row, typeof

HUGE = {"float16": 3e4, "bfloat16": 1e18, "float32": 1e18, "float64": 1e150}


def _gradients(dtype, t):
    """Gradients of every unpleasant kind, by name, at step `t`."""
    info, huge = jnp.finfo(dtype), HUGE[dtype]
    p = params(dtype)

    def fill(value):
        return jax.tree.map(lambda x: jnp.full_like(x, value), p)

    mixed = jnp.array([0, 1e-7, -huge, huge, 1, -1])
    return {
        "zero": fill(0),
        "one zero": {**fill(1), "w": jnp.ones((3, 2), dtype).at[0, 0].set(0)},
        "tiny": fill(1e-7),
        "denormal": fill(float(info.smallest_subnormal)),
        "huge": fill(huge),
        "alternating": fill(huge * (-1) ** t),
        "mixed": {**fill(0), "w": mixed.reshape(3, 2).astype(dtype)},
    }


@everyone
@pytest.mark.parametrize("dtype", list(HUGE))
def test_everything_stays_finite(row: Row, dtype):
    """Three steps with each, in one compiled function."""
    with jax.enable_x64(dtype == "float64"):
        tx, p = row.make(), params(dtype)

        @jax.jit
        def run(gs):
            state, updates = tx.init(p), []
            for g in gs:
                u, state = tx.update(g, state, p)
                updates.append(u)
            return updates, state

        state = tx.init(p)
        kinds = [_gradients(dtype, t) for t in range(3)]
        for name in kinds[0]:
            updates, new = run([kind[name] for kind in kinds])
            assert typeof(new) == typeof(state)
            for x in jax.tree.leaves((updates, new) if row.bounded else updates):
                assert np.isfinite(x.astype(float)).all(), name
