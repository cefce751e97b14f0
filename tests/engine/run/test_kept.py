"""`keep_stacks`: memory of several matrices in one array, and the same numbers."""

import inspect

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding, PartitionSpec

import steepest
from steepest.engine.leaves import Stacked
from tests.zoo import ZOO

KEEPING = [r for r in ZOO if "keep_stacks" in inspect.signature(r.maker).parameters]
# Sides of 16 of matrices with other shapes, and of one that has its shape alone, have
# their turns between each other.
SHAPES = {"a": (16, 32), "c": (32, 16), "d": (16, 32), "e": (48, 16), "f": (32, 16)}
SHAPES |= {"h": (16, 32), "z": (32,)}


def _params(shapes=SHAPES, dtype=jnp.float32):
    rng = np.random.default_rng(1)
    return {k: jnp.asarray(rng.normal(size=s), dtype) for k, s in shapes.items()}


def _grads(params, steps, seed=0):
    rng = np.random.default_rng(seed)
    noise = lambda x: jnp.asarray(rng.normal(size=x.shape), x.dtype)
    return [jax.tree.map(noise, params) for _ in range(steps)]


def _run(tx, params, grads, state=None, eager=False):
    state = tx.init(params) if state is None else state
    update = tx.update if eager else jax.jit(tx.update)
    for g in grads:
        u, state = update(g, state, params)
        params = steepest.apply_updates(params, u)
    return params, state


def _check(make, params, steps=5, eager=False, exact=True):
    grads = _grads(params, steps)
    found, state = _run(make(keep_stacks=True), params, grads, eager=eager)
    want, plain = _run(make(), params, grads, eager=eager)
    close = lambda x, y: np.testing.assert_allclose(
        *(np.asarray(y, float) for y in (x, y)),
        rtol=0 if exact else 1e-5,
        atol=0 if exact else 1e-6,
    )
    jax.tree.map(close, found, want)
    jax.tree.map(close, steepest.unpack(state), plain)
    return state


def _stacked(state):
    leaves = jax.tree.leaves(state, is_leaf=lambda x: isinstance(x, Stacked))
    return [x for x in leaves if isinstance(x, Stacked)]


@pytest.mark.parametrize("row", KEEPING, ids=lambda row: row.name)
def test_the_same_numbers_in_fewer_arrays(row):
    state = _check(row.make, _params(), exact=False)
    kept = _stacked(state)
    assert kept and all(x.layout.stacks == ((0, 2, 5), (1, 4)) for x in kept)
    assert len(jax.tree.leaves(state)) < len(jax.tree.leaves(steepest.unpack(state)))


@pytest.mark.parametrize("eager", [False, True])
@pytest.mark.parametrize("frequency", [1, 2, 3, 10])
def test_every_matrix_has_its_turn_in_the_same_step(frequency, eager):
    make = lambda **k: steepest.soap(1e-2, frequency=frequency, **k)
    _check(make, _params(), steps=4, eager=eager, exact=not eager)


def test_other_orders_and_storage():
    for more in ({"fresh": True}, {"rolled": False}, {"factors": "kl"}):
        _check(lambda more=more, **k: steepest.soap(1e-2, **more, **k), _params())
    large = _params({"a": (64, 64), "b": (64, 64), "c": (64, 128)})
    few = {"memory_dtype": "int8", "frequency": 2}
    state = _check(lambda **k: steepest.soap(1e-2, **few, **k), large)
    assert {x.dtype.name for x in jax.tree.leaves(state)} >= {"int8", "float16"}
    half = _params(dtype=jnp.bfloat16)
    _check(lambda **k: steepest.soap(1e-2, **k), half)


def test_leaves_that_are_stacks_convolutions_and_blocks():
    shapes = {"layers": (3, 16, 32), "w": (16, 32), "conv": (8, 2, 32), "v": (16, 32)}
    more = {"stacked": "layers", "routes": {"conv": "in in out"}, "frequency": 2}
    _check(lambda **k: steepest.soap(1e-2, **more, **k), _params(shapes))
    blocks = {"a": (32, 16), "c": (16, 48)}
    _check(lambda **k: steepest.soap(1e-2, block_size=16, **k), _params(blocks))


def test_many_matrices_have_several_stacks():
    shapes = {f"w{k:02}": (1024, 2048) for k in range(12)}
    tx = steepest.keeping(steepest.scale_by_psgd(max_skew=0.0), keep_stacks=True)
    structs = {k: jax.ShapeDtypeStruct(s, "float32") for k, s in shapes.items()}
    state = jax.eval_shape(tx.init, structs)
    assert state.mu.layout.stacks == (tuple(range(6)), tuple(range(6, 12)))
    alone = jax.eval_shape(tx.init, {"w": structs["w00"]})
    assert not isinstance(alone.mu, Stacked)


@pytest.mark.parametrize("missing", ["a", "c"])
def test_a_leaf_without_a_gradient_keeps_its_memory(missing):
    """Also the first of a stack, by whose number the engine calls the stack."""
    params = _params({"a": (16, 8), "c": (16, 8), "d": (16, 8)})
    tx = steepest.keeping(steepest.scale_by_soap(frequency=1), keep_stacks=True)
    first, second = _grads(params, 2)
    _, before = _run(tx, params, [first])
    found, after = _run(tx, params, [second | {missing: None}], before)
    np.testing.assert_array_equal(found[missing], params[missing])
    before, after = steepest.unpack(before), steepest.unpack(after)
    for name in ("mu", "nu", "factors", "bases"):
        old, new = getattr(before, name), getattr(after, name)
        jax.tree.map(np.testing.assert_array_equal, new[missing], old[missing])
        assert not np.array_equal(*(jax.tree.leaves(x["d"])[0] for x in (old, new)))


def test_masked_leaves():
    mask = {k: k not in "d" for k in SHAPES if k != "z"}
    params = {k: x for k, x in _params().items() if k != "z"}
    one = steepest.masked(steepest.scale_by_soap(), mask)
    state = _check(lambda **k: steepest.keeping(one, **k), params)
    assert _stacked(state)[0].layout.stacks


def test_under_vmap_and_with_injected_numbers():
    params, (g, h) = _params(), _grads(_params(), 2)
    rates = jnp.array([1e-3, 1e-2])

    def end(rate, **more):
        tx = steepest.inject_hyperparams(steepest.soap)(rate, frequency=2, **more)
        return _run(tx, params, [g, h, g])[0]

    found = jax.vmap(lambda rate: end(rate, keep_stacks=True))(rates)
    want = jax.vmap(end)(rates)
    close = lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-6)
    jax.tree.map(close, found, want)


def test_a_state_is_converted_in_the_middle_of_a_run():
    params, grads = _params(), _grads(_params(), 6)
    make = lambda **k: steepest.soap(1e-2, frequency=3, **k)
    plain, kept = make(), make(keep_stacks=True)
    p, state = _run(plain, params, grads[:2])
    p, state = _run(kept, p, grads[2:4], steepest.restore_as(state, kept, p))
    found, state = _run(plain, p, grads[4:], steepest.restore_as(state, plain, p))
    want, end = _run(plain, params, grads)
    jax.tree.map(np.testing.assert_array_equal, (found, state), (want, end))


def test_what_describe_shows_is_the_same():
    params = _params()
    kept, plain = (steepest.soap(1e-2, keep_stacks=x) for x in (True, False))
    lines = [steepest.describe(tx, params).lines for tx in (kept, plain)]
    assert lines[0] == lines[1]


@pytest.mark.parametrize("kind", [AxisType.Auto, AxisType.Explicit])
def test_on_a_mesh_the_stacks_are_replicated(kind):
    mesh = jax.make_mesh((8,), ("data",), axis_types=(kind,))
    where = NamedSharding(mesh, PartitionSpec("data"))
    make = lambda **k: steepest.soap(1e-2, frequency=1, one_sided=True, **k)
    tx, params, grads = make(keep_stacks=True), _params(), _grads(_params(), 3)
    want, _ = _run(make(), params, grads)
    p, gs = jax.device_put((params, grads), where)
    with jax.set_mesh(mesh):
        state = first = steepest.init(tx, p)
        for g in gs:
            u, state = jax.jit(tx.update)(g, state, p)
            p = steepest.apply_updates(p, u)
    types = lambda tree: [jax.typeof(x) for x in jax.tree.leaves(tree)]
    assert types(state) == types(first)
    stacks = jax.tree.leaves([x.stacks for x in _stacked(first)])
    assert all(x.sharding.is_fully_replicated for x in stacks)
    close = lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-5)
    jax.tree.map(close, jax.device_get(p), jax.device_get(want))


def test_a_state_for_other_devices():
    make = steepest.scale_by_soap
    tx = steepest.keeping(make(), keep_stacks=True)
    shared = steepest.keeping(make(), reshard="data")
    params = _params({"a": (16, 8), "c": (16, 8)})
    mesh = jax.make_mesh((2,), ("data",), axis_types=(AxisType.Auto,))
    with jax.set_mesh(mesh):
        state = steepest.init(shared, params)
        with pytest.raises(ValueError, match="on 2 devices, expected one"):
            tx.update(params, state, params)
