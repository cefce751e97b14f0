"""Matrices whose memory is kept in stacks: the same numbers as on one device."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding, PartitionSpec

import steepest

ROWS = PartitionSpec("data")


def _mesh(devices=8):
    kinds = (AxisType.Auto,)
    some = jax.devices()[:devices]
    return jax.make_mesh((devices,), ("data",), axis_types=kinds, devices=some)


def _params(shapes, dtype=jnp.float32):
    keys = jax.random.split(jax.random.key(0), len(shapes))
    pairs = zip(shapes.items(), keys, strict=True)
    return {k: jax.random.normal(key, s).astype(dtype) for (k, s), key in pairs}


def _grads(params, steps):
    rng = np.random.default_rng(0)
    noise = lambda x: jnp.asarray(rng.normal(size=x.shape), x.dtype)
    return [jax.tree.map(noise, params) for _ in range(steps)]


def _run(tx, params, grads, mesh=None, state=None):
    """Some steps, on a mesh or on one device."""
    if mesh is not None:
        params, grads = jax.device_put((params, grads), NamedSharding(mesh, ROWS))
    state = steepest.init(tx, params) if state is None else state
    step = jax.jit(tx.update)
    with jax.set_mesh(mesh or _mesh(1)):
        for g in grads:
            u, state = step(g, state, params)
            params = steepest.apply_updates(params, u)
    return jax.device_get((params, state))


def _check(make, params, steps=4, rtol=1e-5, atol=2e-6):
    grads = _grads(params, steps)
    found, state = _run(make(reshard="data"), params, grads, _mesh())
    want, plain = _run(make(), params, grads)
    close = lambda x, y: np.testing.assert_allclose(x, y, rtol=rtol, atol=atol)
    jax.tree.map(close, found, want)
    return steepest.unpack(state), plain


def test_a_matrix_alone_has_its_turns_with_the_others():
    """Seven sides of 16: five of a stack, and two of matrices with other shapes."""
    shapes = {"a": (16, 64)} | {f"w{k}": (16, 32) for k in range(5)} | {"z": (48, 16)}
    soap = steepest.scale_by_soap(frequency=3, one_sided=True)
    small = steepest.chain(soap, steepest.scale(-1e-3))
    make = lambda **k: steepest.keeping(small, **k)
    _check(make, _params(shapes), steps=5)
    turned = lambda x: not np.allclose(x, np.eye(16))
    for steps in range(5):
        grads = _grads(_params(shapes), steps)
        _, some = _run(make(reshard="data"), _params(shapes), grads, _mesh())
        _, want = _run(make(), _params(shapes), grads)
        bases = [x[0].bases for x in (steepest.unpack(some), want)]
        sides = [
            {k: turned(jax.tree.leaves(x)[0]) for k, x in b.items()} for b in bases
        ]
        assert sides[0] == sides[1]
    assert all(sides[0].values())


def test_leaves_that_are_stacks_and_convolutions():
    shapes = {"layers": (8, 16, 32), "w": (16, 32), "conv": (8, 2, 32)}
    routes = {"conv": "in in out"}
    more = {"stacked": "layers", "routes": routes, "one_sided": True}
    _check(lambda **k: steepest.soap(1e-3, **more, **k), _params(shapes))


def test_blocks_of_matrices():
    make = lambda **k: steepest.soap(1e-3, block_size=16, **k)
    _check(make, _params({"a": (32, 16), "c": (16, 48)}))


def test_few_bits():
    make = lambda **k: steepest.soap(1e-3, memory_dtype="int8", **k)
    state, plain = _check(make, _params({"a": (64, 64), "c": (64, 64)}), steps=2)
    mu = [x[0]["soap"].inner_state[0].mu for x in (state, plain)]
    for k in "ac":
        assert mu[0][k].codes.dtype == jnp.int8
        off = np.asarray(mu[0][k].codes, int) - np.asarray(mu[1][k].codes, int)
        assert np.abs(off).max() <= 1


def test_half_precision():
    """The updates are sent in the dtype of the params."""
    make = lambda **k: steepest.psgd(1e-3, **k)
    params = _params({"a": (16, 8), "c": (16, 8), "d": (16, 8)}, jnp.bfloat16)
    _check(make, params, steps=2, rtol=1e-2, atol=1e-2)


def test_a_leaf_without_a_gradient_keeps_its_memory():
    params = _params({"a": (16, 8), "c": (16, 8), "d": (16, 8)})
    first, second = _grads(params, 2)
    tx = lambda **k: steepest.keeping(steepest.scale_by_psgd(), **k)
    mesh = _mesh()
    _, before = _run(tx(reshard="data"), params, [first], mesh)
    state = jax.device_put(before, NamedSharding(mesh, PartitionSpec()))
    found, after = _run(tx(reshard="data"), params, [second | {"c": None}], mesh, state)
    np.testing.assert_array_equal(found["c"], params["c"])
    before, after = steepest.unpack(before), steepest.unpack(after)
    for name in ("mu", "factors", "bounds"):
        old, new = getattr(before, name), getattr(after, name)
        jax.tree.map(np.testing.assert_array_equal, new["c"], old["c"])
        assert not np.array_equal(jax.tree.leaves(new["a"])[0], 0)
    assert not np.array_equal(before.mu["a"], after.mu["a"])


def test_another_number_of_devices_than_the_state_was_made_for():
    """A stack of 8 for 8 devices on 4, and one of 5 that is padded in a step."""
    params = _params({f"w{k}": (16, 8) for k in range(5)})
    grads = _grads(params, 2)
    tx = steepest.scale_by_psgd(frequency=1)
    make = steepest.keeping(tx, reshard="data")
    for made_for in (8, 1):
        where = NamedSharding(_mesh(made_for), ROWS)
        state = jax.device_get(steepest.init(make, jax.device_put(params, where)))
        found, _ = _run(make, params, grads, _mesh(4), state)
        want, _ = _run(tx, params, grads)
        close = lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-6)
        jax.tree.map(close, found, want)


def test_masked_leaves():
    shapes = {"a": (16, 8), "c": (16, 8), "d": (16, 8)}
    mask = {"a": True, "c": False, "d": True}
    one = steepest.masked(steepest.scale_by_psgd(), mask)
    tx = lambda **k: steepest.keeping(one, **k)
    state, _ = _check(tx, _params(shapes))
    assert set(state.inner_state.mu) == set(shapes)


def test_a_state_of_other_leaves():
    tx = steepest.keeping(steepest.scale_by_psgd(), reshard="data")
    params = _params({"a": (16, 8), "c": (16, 8)})
    other = _params({"a": (8, 8), "c": (8, 8)})
    with jax.set_mesh(_mesh()), pytest.raises(ValueError, match="other leaves than"):
        tx.update(params, tx.init(other), params)
