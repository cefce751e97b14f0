"""State in the memory of the host: the same numbers, and it stays there."""

from types import SimpleNamespace

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
        lambda: steepest.zero(steepest.adamw(1e-2)),
    ],
    ids=["adamw", "int8", "muon", "guard", "MultiSteps", "zero"],
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


MESHES = pytest.mark.parametrize("kind", [AxisType.Auto, AxisType.Explicit])


def _on(kind, *spec):
    mesh = jax.make_mesh((8,), ("data",), axis_types=(kind,))
    return NamedSharding(mesh, PartitionSpec(*spec))


@MESHES
def test_shardings_are_kept(kind):
    where = _on(kind, "data")
    p = jax.device_put(jnp.ones((16, 8)), where)
    tx = steepest.offload(steepest.adam(1e-2))
    with jax.set_mesh(where.mesh):
        state = tx.init(p)
        _, state = jax.jit(tx.update)(p, state, p)
    there = where.with_memory_kind("pinned_host")
    assert state[0].mu.sharding.is_equivalent_to(there, 2)


def _assert_there(state, where):
    for x, its in zip(jax.tree.leaves(state), jax.tree.leaves(where), strict=True):
        assert x.sharding.is_equivalent_to(its, x.ndim)
        assert x.sharding.memory_kind == its.memory_kind


INSIDE = {
    "adam": steepest.adam(1e-2),
    "zero": steepest.zero(steepest.adam(1e-2)),
    "int8": steepest.zero(steepest.adam(1e-2, memory_dtype="int8")),
    "factors": steepest.soap(1e-2, frequency=1),
}


@MESHES
@pytest.mark.parametrize("name", INSIDE)
def test_init_and_steps_on_a_mesh(kind, name):
    """`shardings` says which arrays are in the memory of the host, and they stay."""
    where = _on(kind)
    p, g = (jax.device_put({"w": jnp.ones((64, 64))}, where) for _ in range(2))
    tx = steepest.offload(INSIDE[name])
    there = steepest.shardings(tx, p)
    kinds = lambda row: {x.memory_kind for x in jax.tree.leaves(row)}
    assert kinds(there) == {"pinned_host", "device"}
    state = steepest.init(tx, p)
    _assert_there(state, there)
    assert _kinds(state) == HOST
    if name == "adam":  # `zero` needs to know the shardings of the params
        _assert_there(jax.jit(lambda p: (steepest.init(tx, p), p))(p)[0], there)
    p, state = steepest.make_step(tx)(p, state, g)
    _assert_there(state, there)


@pytest.mark.parametrize("to", ["pinned_host", "unpinned_host"])
@pytest.mark.parametrize("many", [False, True])
def test_either_memory(to, many):
    p, g = _params(), _gradients(0)
    if many:
        p, g = jax.device_put((p, g), _on(AxisType.Auto))
    tx = steepest.offload(steepest.adam(1e-2, keep_count=True), "mu", to)
    there, state = steepest.shardings(tx, p), steepest.init(tx, p)
    _assert_there(state, there)
    assert {x.memory_kind for x in there[0].mu.values()} == {to}
    assert {x.memory_kind for x in there[0].nu.values()} == {"device"}
    _assert_there(tx.update(g, state, p)[1], there)
    state = steepest.make_step(tx)(p, state, g)[1]
    _assert_there(state, there)
    # A state that is read from a file goes there, too.
    _assert_there(steepest.place(jax.device_get(state), there), there)


def test_inside_other_wrappers():
    parts = {"w": steepest.offload(steepest.adam(1e-2)), "b": steepest.adam(1e-2)}
    tx, p = steepest.partition(parts, {"w": "w", "b": "b"}), _params()
    where = steepest.shardings(tx, p)
    kinds = lambda label: where.inner_states[label].inner_state[0].mu[label].memory_kind
    assert (kinds("w"), kinds("b")) == ("pinned_host", "device")


def test_other_memories_are_an_error():
    with pytest.raises(ValueError, match=r"^offload: to is 'device', expected one of"):
        steepest.offload(steepest.adam(1e-2), to="device")


def test_a_device_without_that_memory(monkeypatch):
    device = SimpleNamespace(addressable_memories=lambda: [SimpleNamespace(kind="hbm")])
    monkeypatch.setattr(jax, "local_devices", lambda: [device])
    message = r"offload: to is 'pinned_host', but .* has only the memories 'hbm'\. Pass"
    with pytest.raises(ValueError, match=message):
        steepest.offload(steepest.adam(1e-2)).init({"w": np.ones(3, np.float32)})


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
