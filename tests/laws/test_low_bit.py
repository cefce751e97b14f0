"""Every optimizer with its memory in 8 or 4 bits."""

import inspect

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steepest
from steepest.numerics import is_coded

from ..zoo import over, potential, Row, typeof, ZOO

ROWS = [r for r in ZOO if "memory_dtype" in inspect.signature(r.maker).parameters]
ROWS = [r for r in ROWS if not r.light and r.maker is not steepest.lbfgs]
# What they keep is a copy of the params, a sum, small, or nothing.
WIDE = {"cocob", "fromage", "nag", "noisy_sgd", "polyak_sgd", "sgd", "sign_sgd"}
WIDE |= {"adafactor_factored", "apollo", "apollo_mini", "fira", "galore"}
WIDE |= {"dog", "dowg", "schedule_free_sgd"}
FEW = ("int8", "int4", "float8")


def _params():
    """The smallest matrix whose memory is stored in few bits, and a vector."""
    w = jnp.linspace(-1, 1, 4096).reshape(64, 64)
    return {"w": w + 0.1 * jnp.eye(64), "b": jnp.ones(3)}


def _coded(tree):
    return [x for x in jax.tree.leaves(tree, is_leaf=is_coded) if is_coded(x)]


def _same(a, b):
    for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        np.testing.assert_array_equal(np.asarray(x, float), np.asarray(y, float))


def _trained(tx, p, steps):
    """The params and the state after some steps on `potential`, traced once."""

    @jax.jit
    def run(p):
        def step(carry, _):
            p, state = carry
            value, g = jax.value_and_grad(potential)(p)
            known = {"value": value, "grad": g}
            known |= {"value_fn": potential, "obj_fn": potential}
            u, state = tx.update(g, state, p, **known)
            return (steepest.apply_updates(p, u), state), None

        return jax.lax.scan(step, (p, tx.init(p)), None, length=steps)[0]

    return run(p)


@over(ROWS)
def test_every_optimizer_trains(row: Row):
    """Types are kept, or the loop would not compile."""
    p, tx = _params(), row.make(memory_dtype="int8")
    q, state = _trained(tx, p, 20)
    few = _coded(state)
    assert bool(few) == (row.name not in WIDE)
    assert all(x.shape == (64, 64) for x in few)
    for x in jax.tree.leaves((q, [x.decode() for x in few])):
        assert jnp.isfinite(x).all()
    assert row.confined or potential(q) < potential(p)


MAKERS = {
    "adamw": steepest.adamw,
    "lion": steepest.lion,
    "muon": steepest.muon,
    "rmsprop": steepest.rmsprop,
}
MANY = pytest.mark.parametrize("few", FEW)
makers = pytest.mark.parametrize("name", MAKERS)


@makers
@MANY
def test_compiled_steps_have_the_same_codes(name, few):
    p, tx = _params(), MAKERS[name](0.1, memory_dtype=few)
    state, update = tx.init(p), jax.jit(tx.update)
    for _ in range(2):
        _, new = tx.update(p, state, p)
        _same(_coded(update(p, state, p)), _coded(new))
        assert typeof(new) == typeof(state)
        state = new


@makers
@MANY
def test_hard_gradients(name, few):
    p, tx = _params(), MAKERS[name](0.1, memory_dtype=few)
    update = jax.jit(tx.update)
    for size in (0.0, 1e-7, 1e-42, 1e18):
        state = tx.init(p)
        for factor in (size, -size, 0.0):
            u, state = update(steepest.tree.scale(factor, p), state, p)
            for x in jax.tree.leaves((u, [x.decode() for x in _coded(state)])):
                assert jnp.isfinite(x).all(), size


def test_nan_stays_where_it_is():
    """As in float32: other elements go on."""
    p = _params()
    g = {**p, "w": p["w"].at[3, 4].set(jnp.nan)}
    plain, tx = steepest.adam(0.1), steepest.adam(0.1, memory_dtype="int8")
    states = [plain.init(p), tx.init(p)]
    for g_t in (p, g, p, p, p):
        (u, a), (v, b) = plain.update(g_t, states[0]), tx.update(g_t, states[1])
        states = [a, b]
    np.testing.assert_array_equal(jnp.isnan(u["w"]), jnp.isnan(v["w"]))
    np.testing.assert_allclose(v["w"], u["w"], atol=0.02)
