"""Matrices that the devices of a mesh share: the same numbers, and two exchanges."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding, PartitionSpec

import steepest
from benchmarks.collectives import collectives

AUTO, EXPLICIT = AxisType.Auto, AxisType.Explicit
ROWS, COLUMNS = PartitionSpec("data"), PartitionSpec(None, "data")
TWO = {"all-to-all": 2}


def _params(mesh, spec, many, shape=(64, 256), sides=None):
    keys = jax.random.split(jax.random.key(0), many)
    where = NamedSharding(mesh, spec)
    shapes = sides or [shape] * many
    return {
        f"w{k}": jax.device_put(jax.random.normal(keys[k], shapes[k]), where)
        for k in range(many)
    }


def _step(tx, params, state, grads):
    updates, state = tx.update(grads, state, params)
    return steepest.apply_updates(params, updates), state


def _run(tx, mesh, params):
    """The compiled step's exchanges, and its results."""
    with jax.set_mesh(mesh):
        state = tx.init(params)
        compiled = jax.jit(partial(_step, tx)).lower(params, state, params).compile()
        found = collectives(compiled.as_text())
        return {name: n for name, (n, _) in found.items()}, *compiled(
            params, state, params
        )


def _mesh(kind=AUTO):
    return jax.make_mesh((8,), ("data",), axis_types=(kind,))


def _alone(params):
    """The same params on one device."""
    return jax.tree.map(lambda x: jnp.asarray(np.asarray(x)), params)


@pytest.mark.parametrize(
    "many, shape, spec, kind",
    [
        (8, (64, 256), ROWS, AUTO),
        (8, (64, 256), COLUMNS, AUTO),
        (3, (64, 256), ROWS, AUTO),
        (9, (64, 256), ROWS, EXPLICIT),
        (8, (18, 64), COLUMNS, EXPLICIT),  # 8 devices cannot divide 18 rows
    ],
)
def test_two_exchanges_and_the_same_numbers(many, shape, spec, kind):
    tx = steepest.muon(1e-2, reshard="data")
    mesh = _mesh(kind)
    params = _params(mesh, spec, many, shape)
    found, new, _ = _run(tx, mesh, params)
    assert found == TWO
    plain, alone = steepest.muon(1e-2), _alone(params)
    want, _ = jax.jit(partial(_step, plain))(alone, plain.init(alone), alone)
    for name, x in new.items():
        np.testing.assert_allclose(x, want[name], rtol=1e-5, atol=1e-6)
        assert x.sharding.is_equivalent_to(params[name].sharding, x.ndim)


def test_a_single_matrix_is_left_to_the_compiler():
    mesh = _mesh()
    params = _params(mesh, ROWS, 1)
    both = [
        _run(steepest.muon(1e-2, reshard=axes), mesh, params)[0]
        for axes in (None, "data")
    ]
    assert both[0] == both[1]


def test_over_two_axes():
    mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AUTO, AUTO))
    params = _params(mesh, PartitionSpec("data", "model"), 8)
    tx = steepest.muon(1e-2, reshard=("data", "model"))
    found, new, _ = _run(tx, mesh, params)
    assert "all-gather" not in found
    assert all(
        x.sharding.is_equivalent_to(params[name].sharding, 2) for name, x in new.items()
    )


def test_memory_goes_along_and_keeps_its_sharding():
    """Dion2's formula changes a matrix of memory: four exchanges, and no others."""
    mesh = _mesh()
    params = _params(mesh, ROWS, 8)
    tx = steepest.dion2(1e-2, reshard="data")
    found, _, state = _run(tx, mesh, params)
    assert found == {"all-to-all": 4}
    for x in jax.tree.leaves(state):
        if x.shape == (64, 256):
            assert x.sharding.is_equivalent_to(params["w0"].sharding, 2)


@pytest.mark.parametrize("name", ["soap", "psgd"])
def test_formulas_of_every_few_steps(name):
    """Three steps with memory of every kind give what one device computes."""
    mesh = _mesh()
    params = _params(mesh, ROWS, 9, (16, 8))
    plain = getattr(steepest, name)(1e-2)
    shared = steepest.keeping(plain, reshard="data")
    want, alone = _alone(params), _alone(params)
    before = plain.init(want)
    step = jax.jit(partial(_step, plain))
    with jax.set_mesh(mesh):
        new, state = params, shared.init(params)
        together = jax.jit(partial(_step, shared))
        for _ in range(3):
            new, state = together(new, state, params)
    for _ in range(3):
        want, before = step(want, before, alone)
    for k, x in new.items():
        np.testing.assert_allclose(x, want[k], rtol=1e-4, atol=1e-5)


def test_eager_steps_know_the_mesh():
    params = _params(_mesh(), ROWS, 2, (16, 8))
    tx = steepest.muon(1e-2, reshard="data")
    updates, _ = tx.update(params, tx.init(params), params)
    assert updates["w0"].shape == (16, 8)


@pytest.mark.parametrize(
    "axes, message",
    [
        ("model", r"reshard is 'model', but the mesh has the axes \['data'\]"),
        (("data", "model"), r"reshard is \('data', 'model'\), but the mesh has"),
    ],
)
def test_axes_that_the_mesh_does_not_have(axes, message):
    mesh = _mesh()
    params = _params(mesh, ROWS, 2, (16, 8))
    tx = steepest.muon(1e-2, reshard=axes)
    with jax.set_mesh(mesh), pytest.raises(ValueError, match=message):
        jax.jit(tx.update)(params, tx.init(params), params)


def test_without_a_mesh():
    params = {"a": jnp.ones((4, 6)), "b": jnp.ones((4, 6))}
    tx = steepest.muon(1e-2, reshard="data")
    with pytest.raises(ValueError, match=r"no mesh is set\. .*jax\.set_mesh"):
        jax.jit(tx.update)(params, tx.init(params), params)


def test_inside_shard_map():
    mesh = _mesh()
    params = _params(mesh, PartitionSpec(), 2, (16, 8))
    tx = steepest.muon(1e-2, reshard="data")
    update = lambda g: tx.update(g, tx.init(g), g)[0]
    step = jax.shard_map(update, mesh=mesh, in_specs=ROWS, out_specs=ROWS)
    with pytest.raises(ValueError, match=r"inside `jax\.shard_map`"):
        jax.jit(step)(params)
