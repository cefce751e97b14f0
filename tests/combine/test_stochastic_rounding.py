"""Stochastic rounding of weights: unbiased, exact to apply, the same on every mesh."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.sharding import AxisType, NamedSharding, PartitionSpec

import steepest

HALVES = pytest.mark.parametrize("dtype", ["bfloat16", "float16"])


def _wide(x):
    return np.asarray(x, np.float64)


@HALVES
def test_unbiased_and_one_of_the_neighbours(dtype):
    tx = steepest.stochastic_rounding(steepest.sgd(1.0), key=1)
    p = jnp.full(40_000, 0.75, dtype)
    ulp = float(jnp.finfo(dtype).eps) / 2
    g = jnp.full(p.shape, -0.3 * ulp)
    u, _ = jax.jit(tx.update)(g, tx.init(p), p)
    q = steepest.apply_updates(p, u)
    assert q.dtype == p.dtype
    assert set(np.unique(_wide(q))) == {0.75, 0.75 + ulp}
    np.testing.assert_allclose(_wide(q).mean(), 0.75 + 0.3 * ulp, atol=ulp / 100)
    with jax.numpy_dtype_promotion("standard"):
        np.testing.assert_array_equal(_wide(optax.apply_updates(p, u)), _wide(q))


def test_small_steps_add_up():
    """Rounded to nearest, these leave 1 where it is."""
    tx = steepest.stochastic_rounding(steepest.sgd(1e-3), key=0)
    p = {"w": jnp.ones(64, jnp.bfloat16), "v": jnp.ones(2), "none": None}
    g = {"w": jnp.ones(64, jnp.bfloat16), "v": jnp.ones(2), "none": None}

    def step(carry, _):
        u, state = tx.update(g, carry[1], carry[0])
        return (steepest.apply_updates(carry[0], u), state), None

    (q, _), _ = jax.lax.scan(step, (p, tx.init(p)), length=500)
    np.testing.assert_allclose(_wide(q["w"]).mean(), 0.5, atol=0.02)
    np.testing.assert_allclose(q["v"], 0.5, 1e-4)
    assert q["none"] is None


@HALVES
def test_a_compiled_step_has_the_same_bits(dtype):
    """`make_step` writes the weight without the detour over an update."""
    # No product is rounded: XLA may round a product and a sum once or twice.
    tx = steepest.stochastic_rounding(steepest.sgd(2.0**-5, momentum=0.5), key=3)

    @jax.jit
    def by_update(p, state, g):
        u, state = tx.update(g, state, p)
        return steepest.apply_updates(p, u), state

    ends = []
    for step in (steepest.make_step(tx), by_update):
        draw = lambda k: jax.random.normal(jax.random.key(k), (64, 96))
        p = {"w": draw(0).astype(dtype), "v": jnp.ones(3), "none": None}
        state = tx.init(p)
        for k in range(10):
            g = jnp.exp2(jnp.round(jnp.log2(jnp.abs(draw(k)))))
            p, state = step(p, state, {**p, "w": g.astype(dtype), "v": jnp.ones(3)})
        ends.append((p, state._replace(rng_key=jax.random.key_data(state.rng_key))))
    for x, y in zip(*map(jax.tree.leaves, ends), strict=True):
        assert x.dtype == y.dtype
        np.testing.assert_array_equal(_wide(x), _wide(y))


def test_leaves_and_steps_differ_and_runs_are_equal():
    tx = steepest.stochastic_rounding(steepest.sgd(1e-3), key=0)
    p = {"a": jnp.ones(256, jnp.bfloat16), "b": jnp.ones(256, jnp.bfloat16)}
    g, state = p, tx.init(p)
    first, new = tx.update(g, state, p)
    again, _ = tx.update(g, tx.init(p), p)
    later, _ = tx.update(g, new, p)
    np.testing.assert_array_equal(first["a"], again["a"])
    for other in (first["b"], later["a"]):
        assert (np.asarray(first["a"]) != np.asarray(other)).any()


def test_other_leaves_and_the_state_are_those_of_inner():
    inner = steepest.adam(1e-3)
    tx = steepest.stochastic_rounding(inner, key=0)
    p = {"w": jnp.ones((2, 3)), "h": jnp.ones(3, jnp.bfloat16)}
    g = jax.tree.map(lambda x: 0.5 * x, p)
    u, state = tx.update(g, tx.init(p), p)
    want, want_state = inner.update(g, inner.init(p), p)
    np.testing.assert_array_equal(u["w"], want["w"])
    same = jax.tree.map(lambda x, y: x.dtype == y.dtype, state.inner_state, want_state)
    assert all(jax.tree.leaves(same))


@HALVES
def test_finite_numbers_stay_finite(dtype):
    """Infinities stay infinite, and the largest number does not become one."""
    top = float(jnp.finfo(dtype).max)
    p = jnp.array([top, -top, jnp.inf, -jnp.inf, 0, 1], dtype)
    tx = steepest.stochastic_rounding(steepest.sgd(1.0), key=0)
    g = jnp.array([-top / 300, top / 300, 0, 0, 0, jnp.nan], jnp.float32)
    u, _ = tx.update(g, tx.init(p), p)
    q = _wide(steepest.apply_updates(p, u))
    np.testing.assert_array_equal(q, [top, -top, np.inf, -np.inf, 0, np.nan])


@pytest.mark.parametrize("kind", [AxisType.Auto, AxisType.Explicit], ids=str)
def test_a_mesh_changes_nothing(kind):
    """Eight devices round as one does: random bits belong to the global index."""
    tx = steepest.stochastic_rounding(steepest.sgd(1e-3), key=0)
    p = {"w": jnp.ones((16, 32), jnp.bfloat16), "b": jnp.ones(8, jnp.bfloat16)}
    want, _ = jax.jit(tx.update)(p, tx.init(p), p)
    mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(kind, kind))
    specs = {"w": PartitionSpec("x", "y"), "b": PartitionSpec("y")}
    where = {k: NamedSharding(mesh, spec) for k, spec in specs.items()}
    with jax.set_mesh(mesh):
        q = jax.device_put(p, where)
        u, _ = jax.jit(tx.update)(q, tx.init(q), q)
        for k, x in want.items():
            np.testing.assert_array_equal(u[k], x)
            assert u[k].sharding.is_equivalent_to(where[k], x.ndim)
        eager, _ = tx.update(q, tx.init(q), q)
        np.testing.assert_array_equal(eager["w"], want["w"])


def test_apply_updates_with_a_key_is_sharded_too():
    """Its random bits are placed like the params, also on an explicit mesh."""
    p, key = jnp.ones((16, 32), jnp.bfloat16), jax.random.key(3)
    u = jnp.full(p.shape, 1e-3)
    want = steepest.apply_updates(p, u, key=key)
    mesh = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Explicit,))
    with jax.set_mesh(mesh):
        where = NamedSharding(mesh, PartitionSpec("x"))
        q, v = jax.device_put((p, u), where)
        got = jax.jit(steepest.apply_updates)(q, v, key=key)
    np.testing.assert_array_equal(_wide(got), _wide(want))
