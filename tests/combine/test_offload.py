"""State in the memory of the host: the same numbers, and it stays there."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding, PartitionSpec

import steepest


def _kinds(state):
    """The memory of each array, by its number of axes."""
    arrays = jax.tree.leaves(state)
    return {(x.ndim > 0, x.sharding.memory_kind) for x in arrays}


HOST = {(True, "pinned_host"), (False, "device")}


def _params():
    return {"w": jnp.linspace(-1, 1, 64 * 64).reshape(64, 64), "b": jnp.ones(3)}


def _gradients(k):
    return jax.tree.map(lambda x: x * (k + 1), _params())


@pytest.mark.parametrize("run", ["eager", "jit", "make_step"])
@pytest.mark.parametrize(
    "make",
    [
        lambda: steepest.adamw(1e-2, keep_count=True),
        lambda: steepest.adamw(1e-2, memory_dtype="int8"),
        lambda: steepest.muon(1e-2),
        lambda: steepest.guard(steepest.adamw(1e-2)),
        lambda: steepest.MultiSteps(steepest.adamw(1e-2), 2).gradient_transformation(),
    ],
    ids=["adamw", "int8", "muon", "guard", "MultiSteps"],
)
def test_the_same_bits(run, make):
    results = []
    for tx in (make(), steepest.offload(make())):
        p = _params()
        state = tx.init(p)
        if run == "make_step":
            step = steepest.make_step(tx)
            for k in range(3):
                p, state = step(p, state, _gradients(k))
        else:
            update = jax.jit(tx.update) if run == "jit" else tx.update
            for k in range(3):
                u, state = update(_gradients(k), state, p)
                p = steepest.apply_updates(p, u)
        results.append((p, state))
    (p, plain), (q, moved) = results
    assert _kinds(moved) == HOST
    assert _kinds(q) == {(True, "device")}
    for a, b in zip(
        jax.tree.leaves((p, plain)), jax.tree.leaves((q, moved)), strict=True
    ):
        np.testing.assert_array_equal(a, b)


def test_in_a_loop():
    tx = steepest.offload(steepest.adam(1e-2))
    p = _params()

    def body(carry, _):
        p, state = carry
        u, state = tx.update(p, state, p)
        return (steepest.apply_updates(p, u), state), None

    (_, state), _ = jax.jit(lambda c: jax.lax.scan(body, c, length=3))((p, tx.init(p)))
    assert _kinds(state) == HOST


@pytest.mark.parametrize("kind", [AxisType.Auto, AxisType.Explicit])
def test_shardings_are_kept(kind):
    mesh = jax.make_mesh((8,), ("data",), axis_types=(kind,))
    where = NamedSharding(mesh, PartitionSpec("data"))
    p = jax.device_put(jnp.ones((16, 8)), where)
    tx = steepest.offload(steepest.adam(1e-2))
    with jax.set_mesh(mesh):
        state = tx.init(p)
        _, state = jax.jit(tx.update)(p, state, p)
    there = where.with_memory_kind("pinned_host")
    assert state[0].mu.sharding.is_equivalent_to(there, 2)


def test_only_what_matches():
    state = steepest.offload(steepest.adam(1e-2), match="nu/w").init(_params())
    memory = lambda x: x.sharding.memory_kind
    adam = state[0]
    assert memory(adam.nu["w"]) == "pinned_host"
    assert {memory(x) for x in (adam.nu["b"], adam.mu["w"])} == {"device"}


def test_random_keys_stay_on_the_device():
    tx = steepest.offload(steepest.stochastic_rounding(steepest.sgd(1e-2), 0))
    state = tx.init(jnp.ones(3, jnp.bfloat16))
    assert state.rng_key.sharding.memory_kind == "device"
