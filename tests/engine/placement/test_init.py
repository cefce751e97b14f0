from functools import partial
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import PartitionSpec as P

import steepest

from ._layouts import AUTO, EXPLICIT, mesh, on, params, specs


def where(tree):
    return specs(jax.tree.map(lambda x: x.sharding, tree))


def test_values_are_those_of_tx_init():
    tx, p = steepest.soap(0.1), params(mesh())
    state, want = steepest.init(tx, p), tx.init(p)
    assert jax.tree.structure(state) == jax.tree.structure(want)
    jax.tree.map(np.testing.assert_array_equal, state, want)


def test_everything_is_on_the_mesh():
    state = steepest.init(steepest.soap(0.1), params(mesh()))
    assert {len(x.devices()) for x in jax.tree.leaves(state)} == {8}


def test_inside_jit_leaves_of_one_shape_may_be_sharded_differently():
    q = jax.device_put(jnp.ones((8, 8)), on(mesh(), "x"))
    o = jax.device_put(jnp.ones((8, 8)), on(mesh(), None, "y"))
    p = {"q": q, "o": o, "r": jax.device_put(jnp.ones((8, 8)), on(mesh()))}
    tx = steepest.adafactor(1e-3, min_dim_size_to_factor=4, momentum=0.9)
    want = specs(steepest.shardings(tx, p))
    assert where(jax.jit(partial(steepest.init, tx))(p)) == want
    with jax.set_mesh(mesh()):
        assert where(jax.jit(partial(steepest.init, tx))(p)) == want


def test_inside_jit_values_survive_nan_and_other_dtypes():
    p = {"w": jnp.full((8, 4), jnp.nan, jnp.bfloat16), "n": jnp.ones(8, complex)}
    p = jax.device_put(p, on(mesh(), "x"))
    tx = steepest.adam(0.1)
    state = jax.jit(partial(steepest.init, tx))(p)
    jax.tree.map(np.testing.assert_array_equal, state, tx.init(p))
    assert where(state[0].mu) == {"w": ("x",), "n": ("x",)}


def test_inside_jit_on_one_device_and_without_params():
    tx = steepest.adam(0.1)
    for p in ({}, {"w": jnp.ones((2, 3)), "z": jnp.ones((0, 3)), "none": None}):
        state = jax.jit(partial(steepest.init, tx))(p)
        jax.tree.map(np.testing.assert_array_equal, state, tx.init(p))


def test_inside_shard_map():
    p = jnp.ones((8, 2))
    f = jax.shard_map(
        lambda p: steepest.init(steepest.adam(0.1), p)[0].mu,
        mesh=mesh(),
        in_specs=P("x"),
        out_specs=P("x"),
    )
    assert jax.jit(f)(p).shape == (8, 2)


def test_from_shapes():
    struct = lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=x.sharding)
    tx = steepest.adam(0.1)
    for kind in (mesh(), mesh(EXPLICIT)):
        shapes = jax.tree.map(struct, params(kind))
        state = steepest.init(tx, shapes)
        assert where(state) == specs(steepest.shardings(tx, shapes))


def test_random_keys_are_replicated():
    tx, p = steepest.noisy_sgd(0.1, key=0), params(mesh())
    state = steepest.init(tx, p)
    assert len(jax.tree.leaves(state)[-1].devices()) == 8
    again = steepest.place(tx.init(p), steepest.shardings(tx, p))
    assert where(again) == where(state)


@pytest.mark.parametrize("kind", [None, "numpy", "one device"])
def test_place_after_a_restore(kind):
    tx, p, g = steepest.adamw(0.1), params(mesh()), params(mesh())
    state = tx.init(p)
    if kind == "numpy":
        state = jax.tree.map(np.asarray, state)
    elif kind == "one device":
        state = jax.device_put(state, jax.devices()[2])
    state = steepest.place(state, steepest.shardings(tx, p))
    assert where(state) == where(steepest.init(tx, p))
    p, state = steepest.make_step(tx)(p, state, g)
    assert int(state[0].count) == 1


def test_place_on_another_mesh():
    tx = steepest.adamw(0.1)
    state = steepest.init(tx, params(mesh()))
    other = jax.make_mesh((2,), ("z",), devices=jax.devices()[:2])
    p = params(other, ("z",), ())
    moved = steepest.place(state, steepest.shardings(tx, p))
    assert where(moved) == where(steepest.init(tx, p))
    jax.tree.map(np.testing.assert_array_equal, moved, state)


def test_place_with_other_processes():
    """A sharding with devices of other processes: each makes its own shards."""
    x, key = np.arange(16.0).reshape(8, 2), jax.random.key(3)
    one = on(mesh(), "x")
    with mock.patch.object(type(one), "is_fully_addressable", False):
        with mock.patch.object(jax, "device_put", side_effect=AssertionError):
            y, k = steepest.place([x, key], [one, on(mesh())])
    np.testing.assert_array_equal(y, x)
    assert where(y) == ("x",)
    np.testing.assert_array_equal(jax.random.key_data(k), jax.random.key_data(key))
    assert k.dtype == key.dtype


@pytest.mark.parametrize("kind", [AUTO, EXPLICIT])
def test_offload_is_in_the_memory_of_the_host(kind):
    tx, p = steepest.offload(steepest.adam(0.1)), params(mesh(kind))
    its = steepest.shardings(tx, p)
    states = [steepest.init(tx, p), steepest.place(tx.init(p), its)]
    states += [jax.jit(lambda p: (steepest.init(tx, p), p))(p)[0]]
    plain = steepest.place(states[0], steepest.shardings(steepest.adam(0.1), p))
    states += [steepest.place(plain, its)]
    for state in states:
        assert where(state) == specs(its)
        kinds = jax.tree.map(lambda x: x.sharding.memory_kind, state)
        assert kinds == jax.tree.map(lambda x: x.memory_kind, its)
        assert (kinds[0].mu["w"], kinds[0].count) == ("pinned_host", "device")
    assert plain[0].mu["w"].sharding.memory_kind == "device"


def test_place_on_other_devices_and_in_other_memory():
    """JAX 0.10.2 refuses this for replicated arrays in one `device_put`."""
    x = jax.device_put(jnp.arange(8.0), on(mesh(), memory_kind="pinned_host"))
    two = on(jax.make_mesh((2,), ("z",), devices=jax.devices()[:2]))
    y = steepest.place(x, two.with_memory_kind("device"))
    assert (y.sharding.memory_kind, len(y.devices())) == ("device", 2)
    z = steepest.place(y, x.sharding)
    assert (z.sharding.memory_kind, len(z.devices())) == ("pinned_host", 8)
    np.testing.assert_array_equal(z, np.arange(8.0))


def test_place_names_the_leaf_that_does_not_fit():
    with pytest.raises(
        ValueError, match=r"^place: \['w'\] of the state has shape \(3,"
    ):
        steepest.place({"w": jnp.ones(3)}, {"w": on(mesh(), "x")})
    with pytest.raises(ValueError, match=r"leaf \['v'\] is in the state and not in"):
        steepest.place({"v": jnp.ones(3)}, {"w": on(mesh())})
    with pytest.raises(TypeError, match=r"place: \['w'\] of `where` is a P, expected"):
        steepest.place({"w": jnp.ones(3)}, {"w": P("x")})
