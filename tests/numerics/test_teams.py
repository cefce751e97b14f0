"""Matrices that the devices of a mesh share: the same numbers, and two exchanges."""

import inspect
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
BOTH = PartitionSpec("data", "model")
# The exchanges do not depend on how well the code of a device is optimized.
FAST = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}


def _params(mesh, spec, many, shape=(32, 64)):
    keys = jax.random.split(jax.random.key(0), many)
    where = NamedSharding(mesh, spec)
    return {
        f"w{k}": jax.device_put(jax.random.normal(keys[k], shape), where)
        for k in range(many)
    }


def _make(name, **options):
    rates = (1e-2, 1e-2) if name == "muon_h" else (1e-2,)
    return getattr(steepest, name)(*rates, **options)


def _step(tx, params, state, grads):
    updates, state = tx.update(grads, state, params)
    return steepest.apply_updates(params, updates), state


def _compiled(tx, params):
    """A step of `tx` that keeps shardings, and the state that it starts with."""
    state = steepest.init(tx, params)
    where = jax.tree.map(lambda x: x.sharding, (params, state))
    step = jax.jit(partial(_step, tx), out_shardings=where)
    return step.lower(params, state, params).compile(FAST), state


def _counts(compiled):
    found = collectives(compiled.as_text())
    return {name: n for name, (n, _) in found.items()}


def _check(name, mesh, params, want, steps=2):
    """The exchanges of a step, and the results of a few, which one device gets too."""
    with jax.set_mesh(mesh):
        compiled, state = _compiled(_make(name, reshard=mesh.axis_names), params)
        assert _counts(compiled) == want
        new = params
        for _ in range(steps):
            new, state = compiled(new, state, params)
    alone = jax.tree.map(lambda x: jnp.asarray(np.asarray(x)), params)
    compiled, state = _compiled(_make(name), alone)
    expected = alone
    for _ in range(steps):
        expected, state = compiled(expected, state, alone)
    for k, x in new.items():
        np.testing.assert_allclose(x, expected[k], rtol=1e-4, atol=1e-5)


def _mesh(*kinds):
    sides, kinds = ((8,), (4, 2))[len(kinds) > 1], kinds or (AUTO,)
    return jax.make_mesh(sides, ("data", "model")[: len(sides)], axis_types=kinds)


# One all-to-all for each array that a formula reads, and for each that it changes. The
# basis of a single matrix changes in a step of SOAP, Shampoo and SPlus here: its factor
# and itself are gathered.
EXCHANGES = {
    "muon": {"all-to-all": 2},  # g in, u out
    "normuon": {"all-to-all": 2},
    "adamuon": {"all-to-all": 2},
    "scion": {"all-to-all": 2},
    "muon_h": {"all-to-all": 2},
    "dion2": {"all-to-all": 4},  # and mu in and out
    "psgd": {"all-to-all": 6},
    "kron": {"all-to-all": 9},
    "soap": {"all-to-all": 15, "all-gather": 2},
    "soap_muon": {"all-to-all": 18},
    "shampoo": {"all-to-all": 17, "all-gather": 2},
    "splus": {"all-to-all": 13, "all-gather": 2},
}


@pytest.mark.parametrize("name", EXCHANGES)
def test_exchanges_of_eight_matrices_and_the_same_numbers(name):
    mesh = _mesh()
    _check(name, mesh, _params(mesh, ROWS, 8), EXCHANGES[name])


def test_every_matrix_optimizer_has_a_count():
    takes = lambda x: "reshard" in inspect.signature(x).parameters
    makers = {k for k in steepest.__all__ if inspect.isfunction(getattr(steepest, k))}
    makers = {k for k in makers if takes(getattr(steepest, k))}
    assert makers - {"keeping"} == set(EXCHANGES)


@pytest.mark.parametrize(
    "many, shape, spec, kinds, muon, psgd",
    [
        (8, (32, 64), COLUMNS, (EXPLICIT,), 2, {"all-to-all": 6}),
        # One matrix has its turn in a step.
        (3, (64, 32), ROWS, (EXPLICIT,), 2, {"all-to-all": 3, "all-gather": 2}),
        (9, (32, 64), COLUMNS, (AUTO,), 2, {"all-to-all": 6}),
        # Eight devices cannot divide 18 rows, so the factor is replicated.
        (8, (18, 64), COLUMNS, (AUTO,), 2, {"all-to-all": 3, "all-gather": 1}),
        # An array in the shape of a param travels along one mesh axis after the other.
        (8, (32, 64), BOTH, (EXPLICIT, EXPLICIT), 4, {"all-to-all": 9}),
    ],
)
def test_layouts(many, shape, spec, kinds, muon, psgd):
    mesh = _mesh(*kinds)
    params = _params(mesh, spec, many, shape)
    _check("muon", mesh, params, {"all-to-all": muon})
    _check("psgd", mesh, params, psgd)


def test_a_single_matrix_is_left_to_the_compiler():
    mesh = _mesh()
    params = _params(mesh, ROWS, 1)
    with jax.set_mesh(mesh):
        both = [
            _compiled(_make("muon", reshard=axes), params) for axes in (None, "data")
        ]
    assert _counts(both[0][0]) == _counts(both[1][0])


@pytest.mark.parametrize("kind", [AUTO, EXPLICIT])
@pytest.mark.parametrize("name", ["soap", "psgd"])
def test_memory_of_a_side_is_sharded(name, kind):
    """In the same way, whoever makes the state: each device has an eighth."""
    mesh = _mesh(kind)
    params = _params(mesh, COLUMNS, 2, (16, 64))
    tx = _make(name, reshard="data")
    states = {"eager": tx.init(params), "placed": steepest.init(tx, params)}
    with jax.set_mesh(mesh):
        states |= {"set": tx.init(params), "jitted": jax.jit(tx.init)(params)}
        states["inside"] = jax.jit(partial(steepest.init, tx))(params)
    for how, state in states.items():
        for x in jax.tree.leaves(state[0]):
            if x.ndim == 2 and x.shape != (16, 64):
                assert x.sharding.shard_shape(x.shape)[0] * 8 == x.shape[0], how
    where = steepest.shardings(tx, params)
    for x, place in zip(*map(jax.tree.leaves, (states["placed"], where)), strict=True):
        assert x.sharding.is_equivalent_to(place, x.ndim)


def test_a_side_that_the_devices_do_not_divide_is_replicated():
    mesh = _mesh()
    params = _params(mesh, COLUMNS, 2, (18, 64))
    state = steepest.init(_make("soap", reshard="data"), params)
    rows, columns = state[0]["soap"].inner_state[0].factors["w0"]
    assert rows.sharding.is_fully_replicated
    assert columns.sharding.shard_shape(columns.shape) == (8, 64)


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
