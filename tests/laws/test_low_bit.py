"""Memory in 8 or 4 bits: what it does to the updates."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding, PartitionSpec

import steepest
from steepest.engine.leaves import KINDS
from steepest.numerics import is_coded

from .. import dynamic8
from ..zoo import typeof


def _params():
    """The smallest matrix whose memory is stored in few bits, and a vector."""
    w = jnp.linspace(-1, 1, 4096).reshape(64, 64)
    return {"w": w + 0.1 * jnp.eye(64), "b": jnp.ones(3)}


def _coded(tree):
    return [x for x in jax.tree.leaves(tree, is_leaf=is_coded) if is_coded(x)]


def _same(a, b):
    for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        np.testing.assert_array_equal(np.asarray(x, float), np.asarray(y, float))


CASES = [("adamw", "int8"), ("adamw", "int4"), ("adamw", "float8")]
CASES += [("lion", "int8"), ("muon", "int8")]
some = pytest.mark.parametrize("name, few", CASES)


@some
def test_compiled_steps_have_the_same_codes(name, few):
    p, tx = _params(), getattr(steepest, name)(0.1, memory_dtype=few)
    state, update = tx.init(p), jax.jit(tx.update)
    for _ in range(2):
        _, new = tx.update(p, state, p)
        _same(_coded(update(p, state, p)), _coded(new))
        assert typeof(new) == typeof(state)
        state = new


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


KEY = jax.random.key(0)
# Columns differ by a factor of a hundred within a block.
SIZES = jnp.exp(jax.random.normal(KEY, (16, 256)))
SIGNS = jnp.sign(jax.random.normal(jax.random.fold_in(KEY, 1), (16, 256)))


# Thousands of steps: code that LLVM has optimized saves more than that takes.
long = partial(jax.jit, compiler_options={"xla_backend_optimization_level": 1})


def _long_run(gradient, steps, few):
    """The last update of Adam, and the sum of those in the second half."""
    tx = steepest.keeping(steepest.scale_by_adam(), memory_dtype=few)
    p = jnp.zeros((16, 256))

    @long
    def run():
        def step(carry, t):
            state, _, total = carry
            u, state = tx.update(gradient(t), state)
            return (state, u, jnp.where(t >= steps // 2, total + u, total)), None

        return jax.lax.scan(step, (tx.init(p), p, p), jnp.arange(steps))[0]

    return run()[1:]


def _constant(t):
    return SIZES * SIGNS


def _noisy(t):
    noise = jax.random.normal(jax.random.fold_in(KEY, t), SIZES.shape)
    return SIZES * (noise + 0.05 * SIGNS)


def _half_dead(t):
    """No gradients for half of the columns in the last three quarters of 2000 steps."""
    dead = (jnp.arange(256) % 2 == 0) & (t >= 500)
    return jnp.where(dead, 0, _noisy(t))


def test_a_constant_gradient_has_the_right_updates():
    """In bfloat16 they would be 1.9 times too large, with FlashOptim's codes 1.27."""
    u, _ = _long_run(_constant, 4000, "int8")
    ratio = u / SIGNS  # Adam's update is the sign
    np.testing.assert_allclose(jnp.median(ratio), 1, atol=0.01)
    np.testing.assert_allclose(jnp.quantile(ratio, 0.01), 1, atol=0.1)
    np.testing.assert_allclose(jnp.quantile(ratio, 0.99), 1, atol=0.1)


def test_the_way_is_that_of_float32(monkeypatch):
    """Closer than with the map of bitsandbytes for mean squares."""

    def error(few):
        _, total = _long_run(_noisy, 1000, few)
        return float(jnp.linalg.norm(total - wanted) / jnp.linalg.norm(wanted))

    _, wanted = _long_run(_noisy, 1000, None)
    ours = error("int8")
    assert ours < 0.1
    dynamic8.register(monkeypatch)
    monkeypatch.setitem(KINDS["int8"], "nonnegative", "dynamic8")
    assert ours < error("int8")


def test_what_has_no_gradient_stops():
    """Codes decay to the smallest one, and that is small enough."""
    _, total = _long_run(_half_dead, 2000, "int8")
    dead, alive = jnp.abs(total[:, ::2]), jnp.abs(total[:, 1::2])
    assert jnp.max(dead) < 0.5
    assert jnp.mean(alive) > 20


def test_lion_goes_where_float32_goes():
    """2 % of the signs differ, and not in favour of either direction."""
    txs = [
        steepest.keeping(steepest.scale_by_lion(), memory_dtype=few)
        for few in ("int8", None)
    ]

    @jax.jit
    def run():
        def step(states, t):
            found = [tx.update(_noisy(t), s) for tx, s in zip(txs, states, strict=True)]
            (u, _), (v, _) = found
            return [s for _, s in found], (u == v, u * SIGNS, v * SIGNS)

        states = [tx.init(SIZES) for tx in txs]
        return jax.lax.scan(step, states, jnp.arange(1500))[1]

    same, ours, theirs = (float(jnp.mean(x[300:])) for x in run())
    assert same > 0.97
    np.testing.assert_allclose(ours, theirs, rtol=0.01)


def test_a_momentum_in_4_bits_turns_with_its_gradients():
    """Rounded to nearest it would not: a step changes it by less than a level."""
    signs = jnp.sign(jax.random.normal(KEY, (64, 128)))
    tx = steepest.keeping(steepest.scale_by_lion(b2=0.99), memory_dtype="int4")

    @long
    def run():
        def step(state, t):
            g = jax.random.normal(jax.random.fold_in(KEY, t), signs.shape)
            way = jnp.where(t < 300, 0.3, -0.3) * signs
            _, state = tx.update(g + way, state)
            m = state.mu.decode()
            return state, jnp.vdot(m, signs) / jnp.linalg.norm(m) / signs.size**0.5

        return jax.lax.scan(step, tx.init(signs), jnp.arange(600))[1]

    cosines = run()
    assert cosines[299] > 0.7 and cosines[599] < -0.7


def test_off_is_plain():
    p = _params()
    a, b = steepest.adamw(0.1), steepest.adamw(0.1, memory_dtype=None)
    _same(a.update(p, a.init(p), p), b.update(p, b.init(p), p))
    wide = steepest.adamw(0.1, memory_dtype=jnp.float32)
    _same(a.update(p, a.init(p), p), wide.update(p, wide.init(p), p))


@pytest.mark.parametrize("kind", [AxisType.Auto, AxisType.Explicit], ids=str)
@pytest.mark.parametrize("n", [64, 600, 1024])
def test_a_mesh_changes_nothing(kind, n):
    """Blocks never cross rows, so codes do not depend on the shards."""
    p = jax.random.normal(KEY, (64, n))
    tx = steepest.adam(0.1, memory_dtype="int8")
    mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(kind, kind))
    wanted = tx.init(p)
    for _ in range(2):
        _, wanted = jax.jit(tx.update)(p, wanted)
    with jax.set_mesh(mesh):
        q = jax.device_put(p, NamedSharding(mesh, PartitionSpec("x", "y")))
        _, state = jax.jit(tx.update)(q, tx.init(q))
        u, state = jax.jit(tx.update)(q, state)
        for x in (u, state[0].mu.codes, state[0].nu.codes):
            assert x.sharding.is_equivalent_to(q.sharding, 2)
    _same(state, wanted)
