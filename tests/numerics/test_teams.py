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
    name, more = VARIANTS.get(name, (name, {}))
    rates = (1e-3, 1e-3) if name == "muon_h" else (1e-3,)
    return getattr(steepest, name)(*rates, **more, **options)


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
    """The exchanges of a step, and the results of a few, which one device gets too.

    Each step has other gradients: with the same ones, a factor has few directions, and
    the others in its basis are rounding errors.
    """
    grads = [jax.tree.map(partial(_noise, k), params) for k in range(steps)]
    with jax.set_mesh(mesh):
        compiled, state = _compiled(_make(name, reshard=mesh.axis_names), params)
        assert _counts(compiled) == want
        new = params
        for g in grads:
            new, state = compiled(new, state, g)
    expected, grads = jax.tree.map(
        lambda x: jnp.asarray(np.asarray(x)), (params, grads)
    )
    compiled, state = _compiled(_make(name), expected)
    for g in grads:
        expected, state = compiled(expected, state, g)
    for k, x in new.items():
        near = 1e-5 if x.dtype == jnp.float32 else 1e-9
        np.testing.assert_allclose(x, expected[k], rtol=near, atol=near)


def _noise(k, x):
    noise = np.random.default_rng(k).normal(size=x.shape).astype(x.dtype)
    return jax.device_put(noise * np.asarray(x), x.sharding)


def _mesh(*kinds):
    sides, kinds = ((8,), (4, 2))[len(kinds) > 1], kinds or (AUTO,)
    return jax.make_mesh(sides, ("data", "model")[: len(sides)], axis_types=kinds)


OPTIMIZERS = (
    "muon normuon adamuon scion muon_h dion2 psgd kron soap soap_muon shampoo splus"
).split()
# Formulas with other memory, or other times to change it.
VARIANTS = {
    "kl_soap": ("soap", {"factors": "kl"}),
    "paper_soap": ("soap", {"rolled": False}),
    "fresh_kl_soap": ("soap", {"factors": "kl", "fresh": True}),
    "kl_shampoo": ("shampoo", {"factors": "kl"}),
    "rolled_kron": ("kron", {"rolled": True, "frequency": 2}),
    "short_side": ("soap", {"one_sided": True, "frequency": 2}),
}
ONCE = {"all-to-all": 2}  # the gradients there, and the updates back


@pytest.mark.parametrize("name", [*OPTIMIZERS, *VARIANTS])
def test_two_exchanges_for_eight_matrices_and_the_same_numbers(name):
    mesh = _mesh()
    _check(name, mesh, _params(mesh, ROWS, 8), ONCE)


@pytest.mark.parametrize("spec", [ROWS, COLUMNS], ids=["rows", "columns"])
@pytest.mark.parametrize("name", ["normuon", "dion2", "soap", "shampoo"])
def test_larger_matrices(name, spec):
    """128 KB, and an eighth of the state on each device."""
    mesh = _mesh()
    params = _params(mesh, spec, 8, (64, 256))
    with jax.set_mesh(mesh):
        compiled, state = _compiled(_make(name, reshard="data"), params)
    assert collectives(compiled.as_text()) == {"all-to-all": (2, 8 * 64 * 256)}
    arrays = [x for x in jax.tree.leaves(state) if x.ndim]
    shards = [x.addressable_shards[0].data for x in arrays]
    assert 8 * sum(x.nbytes for x in shards) == sum(x.nbytes for x in arrays)


def test_every_matrix_optimizer_is_tested():
    takes = lambda x: "reshard" in inspect.signature(x).parameters
    makers = {k for k in steepest.__all__ if inspect.isfunction(getattr(steepest, k))}
    makers = {k for k in makers if takes(getattr(steepest, k))}
    assert makers - {"keeping"} == set(OPTIMIZERS)


@pytest.mark.parametrize(
    "many, shape, spec, kinds, exchanges",
    [
        (8, (32, 64), COLUMNS, (EXPLICIT,), 2),
        (3, (64, 32), ROWS, (EXPLICIT,), 2),
        (9, (32, 64), COLUMNS, (AUTO,), 2),
        (20, (32, 16), ROWS, (AUTO,), 2),
        (8, (18, 64), COLUMNS, (AUTO,), 2),  # eight devices cannot divide 18 rows
        # A matrix travels along one mesh axis after the other.
        (8, (32, 64), BOTH, (EXPLICIT, EXPLICIT), 4),
    ],
)
@pytest.mark.parametrize("name", ["muon", "short_side"])
def test_layouts(name, many, shape, spec, kinds, exchanges):
    # In float32, an eigenbasis amplifies rounding errors to 1.4e-5 on some machines.
    with jax.enable_x64(True):
        mesh = _mesh(*kinds)
        params = _params(mesh, spec, many, shape)
        _check(name, mesh, params, {"all-to-all": exchanges}, steps=3)


def test_one_axis_of_two():
    """The devices along the other axis compute the same."""
    mesh = _mesh(AUTO, AUTO)
    params = _params(mesh, BOTH, 8, (16, 32))
    with jax.set_mesh(mesh):
        step = jax.jit(partial(_step, tx := _make("short_side", reshard="data")))
        new, state = step(params, steepest.init(tx, params), params)
    alone = jax.device_get(params)
    tx = _make("short_side")
    expected, _ = _step(tx, alone, tx.init(alone), alone)
    np.testing.assert_allclose(new["w3"], expected["w3"], rtol=1e-5, atol=1e-5)
    stack = state[0]["soap"].inner_state[0].bases.stacks[0][0]
    assert stack.sharding.shard_shape(stack.shape) == (2, 16, 16)


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
    """In the same way, whoever makes the state: each device has an eighth.

    Of a single matrix along a side, and of several along the axis of their stack.
    """
    mesh = _mesh(kind)
    params = {"one": _params(mesh, COLUMNS, 1, (16, 64))["w0"]}
    params |= _params(mesh, COLUMNS, 3, (24, 32))
    tx = _make(name, reshard="data")
    states = {"eager": tx.init(params), "placed": steepest.init(tx, params)}
    with jax.set_mesh(mesh):
        states |= {"set": tx.init(params), "jitted": jax.jit(tx.init)(params)}
        states["inside"] = jax.jit(partial(steepest.init, tx))(params)
    for how, state in states.items():
        for x in jax.tree.leaves(state[0]):
            if x.ndim and x.shape != (16, 64):
                assert x.sharding.shard_shape(x.shape)[0] * 8 == x.shape[0], how
    where = steepest.shardings(tx, params)
    for x, place in zip(*map(jax.tree.leaves, (states["placed"], where)), strict=True):
        assert x.sharding.is_equivalent_to(place, x.ndim)


def test_a_side_that_the_devices_do_not_divide_is_replicated():
    mesh = _mesh()
    params = _params(mesh, COLUMNS, 1, (18, 64))
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
