"""A run continues with another storage, and on other devices."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steepest

from ._layouts import AUTO, EXPLICIT, on

P = {"w": jnp.linspace(-1, 1, 4096).reshape(64, 64), "b": jnp.ones(3)}
STORED = [None, "int8", "int4", "float8", jnp.bfloat16]


def _begun(dtype):
    tx = steepest.adamw(0.1, memory_dtype=dtype)
    state = tx.init(P)
    for _ in range(2):
        _, state = tx.update(P, state, P)
    return tx, state


@pytest.mark.parametrize("before", STORED, ids=str)
@pytest.mark.parametrize("after", STORED, ids=str)
def test_from_any_storage_to_any_other(before, after):
    tx, _ = _begun(after)
    _, state = _begun(before)
    new = steepest.restore_as(state, tx, P)
    assert jax.tree.structure(new) == jax.tree.structure(tx.init(P))
    assert [x.dtype for x in jax.tree.leaves(new)] == [
        x.dtype for x in jax.tree.leaves(tx.init(P))
    ]
    assert int(new[0].count) == 2
    u, _ = tx.update(P, new, P)
    want, _ = _begun(None)[0].update(P, _begun(None)[1], P)
    np.testing.assert_allclose(u["b"], want["b"], 0.02)
    if "int4" not in (before, after):
        np.testing.assert_allclose(u["w"], want["w"], 0.1)


def test_what_is_stored_so_is_unchanged():
    tx, state = _begun("int8")
    new = steepest.restore_as(state, tx, P)
    for x, y in zip(jax.tree.leaves(state), jax.tree.leaves(new), strict=True):
        np.testing.assert_array_equal(x, y)


def test_another_optimizer_is_refused():
    _, state = _begun("int8")
    with pytest.raises(ValueError, match=r"restore_as: .*only storage and devices may"):
        steepest.restore_as(state, steepest.lion(0.1), P)
    tx = steepest.adamw(0.1)
    with pytest.raises(ValueError, match=r"restore_as: .*mu.*\['w'\].* has shape"):
        steepest.restore_as(state, tx, {**P, "w": jnp.ones((64, 65))})


ADAM = steepest.adam(0.1)
CODED = steepest.adam(0.1, memory_dtype="int8")
KINDS = {
    "plain": ADAM,
    "zero": steepest.zero(ADAM),
    "packed": steepest.packed(ADAM, below=10),
    "offload": steepest.offload(ADAM),
    "int8": CODED,
    "zero(int8)": steepest.zero(CODED),
    "offload(zero)": steepest.offload(steepest.zero(ADAM)),
    "offload(int8)": steepest.offload(CODED, to="unpinned_host"),
    "offload(packed)": steepest.offload(steepest.packed(ADAM, below=10)),
}
Q = {**P, "c": jnp.linspace(0, 1, 8), "d": jnp.linspace(1, 2, 8)}


def _params(devices, kind=AUTO):
    """Replicated; on one device without a mesh. Steps may take their buffers."""
    copy = jax.tree.map(jnp.array, Q)
    if devices == 1:
        return copy
    mesh = jax.make_mesh(
        (devices,), ("data",), axis_types=(kind,), devices=jax.devices()[:devices]
    )
    return jax.device_put(copy, on(mesh))


def _trained(tx=ADAM):
    """A state after two steps on one device."""
    state = tx.init(Q)
    for _ in range(2):
        _, state = tx.update(Q, state, Q)
    return state


@pytest.mark.parametrize("axes", [AUTO, EXPLICIT])
@pytest.mark.parametrize("kind", KINDS)
def test_to_any_placement_and_back(kind, axes):
    """From one device to eight, plainly on two, and back on one."""
    tx, first = KINDS[kind], _trained(CODED if "int8" in kind else ADAM)
    way = [(tx, 8), (CODED if "int8" in kind else ADAM, 2), (tx, 1), (ADAM, 1)]
    state = first
    for tx, devices in way:
        params = _params(devices, axes)
        state = steepest.restore_as(state, tx, params)
        want = steepest.init(tx, params)
        assert jax.tree.structure(state) == jax.tree.structure(want)
        for x, y in zip(jax.tree.leaves(state), jax.tree.leaves(want), strict=True):
            assert x.sharding.is_equivalent_to(y.sharding, x.ndim)
            assert x.sharding.memory_kind == y.sharding.memory_kind
    equal = lambda x, y: np.testing.assert_array_equal(x, y)
    jax.tree.map(equal, state, steepest.restore_as(first, ADAM, Q))


def test_from_one_placement_to_another():
    """A nested state of `zero`, in few bits and on the host, becomes packed."""
    before = steepest.guard(steepest.offload(steepest.zero(CODED)))
    after = steepest.guard(steepest.packed(ADAM, below=10))
    state = steepest.restore_as(steepest.guard(CODED).init(Q), before, _params(8))
    state = steepest.restore_as(state, after, _params(4))
    params, state = steepest.make_step(after)(_params(4), state, _params(4))
    plain = steepest.restore_as(state, steepest.guard(ADAM), Q)
    assert int(plain.inner_state[0].count) == 1
    want, _ = steepest.make_step(ADAM)(_params(1), ADAM.init(Q), Q)
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, 1e-6), params, want)


def test_shapes_without_a_sharding_leave_the_state_where_it_is():
    state = steepest.init(ADAM, _params(8))
    shapes = jax.eval_shape(lambda: Q)
    assert len(steepest.restore_as(state, CODED, shapes)[0].count.devices()) == 8
    again = jax.jit(lambda s: steepest.restore_as(s, CODED, Q))(_trained())
    assert jax.tree.structure(again) == jax.tree.structure(CODED.init(Q))


def _matrices(devices, kind=AUTO):
    """Five matrices of one shape, and one of another, sharded by rows."""
    shapes = {f"w{k}": (16, 24) for k in range(5)} | {"z": (16, 32)}
    keys = jax.random.split(jax.random.key(0), 6)
    pairs = zip(shapes.items(), keys, strict=True)
    params = {k: jax.random.normal(key, s) for (k, s), key in pairs}
    if devices == 1:
        return params
    mesh = jax.make_mesh(
        (devices,), ("data",), axis_types=(kind,), devices=jax.devices()[:devices]
    )
    return jax.device_put(params, on(mesh, "data"))


@pytest.mark.parametrize("axes", [AUTO, EXPLICIT])
@pytest.mark.parametrize("storage", [None, "int8"])
def test_stacks_of_matrices(storage, axes, monkeypatch):
    """From a plain state to stacks for 8 and for 2 devices, and back: the same bits."""
    monkeypatch.setattr("steepest.engine.leaves._low_bits.SMALL", 16)
    soap = steepest.scale_by_soap(one_sided=True)
    plain = steepest.keeping(soap, memory_dtype=storage)
    tx = steepest.keeping(plain, reshard="data")
    params = _matrices(1)
    _, state = plain.update(params, plain.init(params), params)
    first = state
    for devices in (8, 2, 1):
        params = _matrices(devices, axes)
        state = steepest.restore_as(state, tx, params)
        want = steepest.init(tx, params)
        assert jax.tree.structure(state) == jax.tree.structure(want)
        for x, y in zip(jax.tree.leaves(state), jax.tree.leaves(want), strict=True):
            assert x.shape == y.shape and x.dtype == y.dtype
            assert x.sharding.is_equivalent_to(y.sharding, x.ndim)
        equal = lambda x, y: np.testing.assert_array_equal(x, y)
        jax.tree.map(equal, steepest.unpack(state), first)
        if devices > 1:
            kept = state.factors.stacks[0][0]
            assert kept.shape == ({8: 8, 2: 6}[devices], 16, 16)
            assert steepest.restore_as(state, tx, params).factors.stacks[0][0] is kept
    again = steepest.restore_as(state, plain, _matrices(1))
    jax.tree.map(equal, again, first)


def test_a_state_of_stacks_goes_on_elsewhere():
    """Two steps on 8 devices and one on 4 are three on one device."""
    tx = steepest.soap(1e-3, one_sided=True, reshard="data")
    saved, params = None, jax.device_get(_matrices(1))
    for devices, steps in ((8, 2), (4, 1)):
        where = jax.tree.map(lambda x: x.sharding, _matrices(devices))
        params, grads = (jax.device_put(x, where) for x in (params, _matrices(1)))
        state = steepest.init(tx, params)
        if saved is not None:
            state = steepest.restore_as(saved, tx, params)
        with jax.set_mesh(params["z"].sharding.mesh):
            for _ in range(steps):
                params, state = steepest.make_step(tx)(params, state, grads)
        saved, params = jax.device_get((state, params))
    alone = steepest.soap(1e-3, one_sided=True)
    want, state = _matrices(1), alone.init(_matrices(1))
    for _ in range(3):
        want, state = steepest.make_step(alone)(want, state, _matrices(1))
    close = lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-5, atol=2e-6)
    jax.tree.map(close, params, jax.device_get(want))
