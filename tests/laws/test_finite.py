"""No gradient makes anything infinite or NaN."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ..zoo import DISTINCT, few_params, params, Row, typeof, ZOO

HUGE = {"float16": 3e4, "bfloat16": 1e18, "float32": 1e18, "float64": 1e150}


def _params(dtype):
    """The scalar and the empty array only in float32: they take time to compile."""
    return params(dtype) if dtype == "float32" else few_params(dtype)


@functools.cache
def _gradients(dtype, t):
    """Every kind of difficult gradient, by name, at step `t`."""
    info, huge = jnp.finfo(dtype), HUGE[dtype]
    p = _params(dtype)

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


# A narrow and a wide dtype; for optimizers also bfloat16 or float64, in turns.
CASES = [(row, "float32") for row in DISTINCT]
CASES += [(row, "float16") for row in DISTINCT if not row.light]
_heavy = [row for row in ZOO if not row.light and not row.variant]
CASES += [(row, ("bfloat16", "float64")[k % 2]) for k, row in enumerate(_heavy)]


@pytest.mark.parametrize(
    "row, dtype", [pytest.param(*x, id=f"{x[0].name}-{x[1]}") for x in CASES]
)
def test_everything_stays_finite(row: Row, dtype):
    """Three compiled steps with each."""
    with jax.enable_x64(dtype == "float64"):
        tx, p = row.make(), _params(dtype)
        update, begin = jax.jit(tx.update), tx.init(p)
        kinds = [_gradients(dtype, t) for t in range(3)]
        for name in kinds[0]:
            state = begin
            for kind in kinds:
                u, state = update(kind[name], state, p)
                for x in jax.tree.leaves((u, state) if row.bounded else u):
                    assert np.isfinite(np.asarray(x, float)).all(), name
            assert typeof(state) == typeof(begin)
            assert typeof(u) == typeof(p)
