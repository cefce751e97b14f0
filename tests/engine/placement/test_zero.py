import pickle
import re
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steepest
from steepest import zero

from ._layouts import AUTO, EXPLICIT, mesh as two_axes, on, specs

SHAPES = {"w": (64, 32), "v": (3, 128), "b": (1024,), "c": (3,)}
KINDS = pytest.mark.parametrize("kind", [AUTO, EXPLICIT])
SIZES = {"f32": 4, "s32": 4, "pred": 1, "s8": 1, "u8": 1}
SKIP = steepest.guard(steepest.adamw(0.1))


def _mesh(kind=AUTO):
    return jax.make_mesh((8,), ("data",), axis_types=(kind,))


def _params(where=None, seed=0):
    keys = jax.random.split(jax.random.key(seed), len(SHAPES))
    rows = zip(SHAPES.items(), keys, strict=True)
    p = {k: jax.random.normal(key, shape) for (k, shape), key in rows}
    return p if where is None else jax.device_put(p, where)


def _collectives(text):
    """The names and bytes of the collectives of a program."""
    rows = []
    for line in text.splitlines():
        call = re.search(r"= (.*?) (all-[a-z-]+|reduce-scatter|coll[a-z-]+)\(", line)
        if call:
            parts = re.findall(r"(\w+)\[([\d,]*)\]", call[1])
            sizes = [np.prod([int(n) for n in x.split(",") if n]) for _, x in parts]
            of = [SIZES[t] * n for (t, _), n in zip(parts, sizes, strict=True)]
            rows.append((call[2].removesuffix("-start"), int(sum(of))))
    return rows


@KINDS
def test_adamw_gathers_each_leaf_once(kind):
    p, tx = _params(on(_mesh(kind))), zero(steepest.adamw(1e-3))
    step = steepest.make_step(tx)
    text = step.lower(p, steepest.init(tx, p), p).compile().as_text()
    large = [row for row in _collectives(text) if row[1] > 1024]
    # ['c'] has no dimension that 8 divides.
    assert sorted(large) == [("all-gather", 4 * n) for n in (384, 1024, 2048)]


@KINDS
@pytest.mark.parametrize(
    "tx",
    [
        steepest.adam(0.1),
        steepest.lion(0.1),
        steepest.chain(steepest.trace(0.9), steepest.scale(-0.1)),
        steepest.MultiSteps(steepest.adam(0.1), 2).gradient_transformation(),
    ],
    ids=["adam", "lion", "trace", "MultiSteps"],
)
def test_elementwise_results_are_equal_bit_for_bit(tx, kind):
    """And a device keeps an eighth of the state, while the params stay replicated."""
    p, g, sharded = _params(on(_mesh(kind))), _params(on(_mesh(kind)), 1), zero(tx)
    state, where = steepest.init(sharded, p), steepest.shardings(sharded, p)
    assert jax.tree.structure(state) == jax.tree.structure(where)
    q, plain, h = _params(), tx.init(_params()), _params(seed=1)
    step, whole = jax.jit(sharded.update), jax.jit(tx.update)
    for _ in range(3):
        # In one program with the update, XLA would round `p + u` once instead of twice.
        u, state = step(g, state, p)
        v, plain = whole(h, plain, q)
        p, q = steepest.apply_updates(p, u), steepest.apply_updates(q, v)
    jax.tree.map(np.testing.assert_array_equal, p, q)
    jax.tree.map(np.testing.assert_array_equal, state.inner_state, plain)
    assert all(x.sharding.is_fully_replicated for x in p.values())
    arrays = jax.tree.leaves(state)
    mine = sum(x.addressable_shards[0].data.nbytes for x in arrays)
    assert mine <= sum(x.nbytes for x in arrays) / 8 * 1.01


@pytest.mark.parametrize(
    "make",
    [
        # XLA may fuse the decay with the rest, and then rounds once instead of twice.
        lambda: zero(steepest.adamw(0.1)),
        lambda: zero(steepest.adafactor(0.1, min_dim_size_to_factor=16)),
        lambda: zero(steepest.lamb(0.01)),
        lambda: zero(SKIP),
        lambda: steepest.guard(zero(steepest.adamw(0.1))),
        lambda: steepest.MultiSteps(zero(steepest.adam(0.1)), 2),
        lambda: steepest.masked(zero(steepest.adam(0.1)), "w|c"),
        lambda: zero(steepest.adam(0.1, memory_dtype="int8")),
    ],
    ids="decay factored norms guarded guard MultiSteps masked int8".split(),
)
def test_others_are_near(make):
    """Sums may be in another order. The state stays where `shardings` says."""
    tx = steepest.with_extra_args_support(make())
    p, g = _params(on(_mesh())), _params(on(_mesh()), 1)
    big = {"w": jnp.ones((64, 256))}  # for `int8`
    p, g = {**p, "x": jax.device_put(big, on(_mesh()))}, {**g, "x": big}
    where, q = steepest.shardings(tx, p), jax.device_get(p)
    state, step = steepest.init(tx, p), steepest.make_step(tx)
    plain, whole = tx.init(q), steepest.make_step(tx)
    for _ in range(3):
        p, state = step(p, state, g)
        q, plain = whole(q, plain, jax.device_get(g))
    for x, its in zip(jax.tree.leaves(state), jax.tree.leaves(where), strict=True):
        assert x.sharding.is_equivalent_to(its, x.ndim)
    near = partial(np.testing.assert_allclose, rtol=1e-5, atol=1e-6)
    jax.tree.map(near, p, q)


@KINDS
def test_the_axis_is_added_to_the_first_dimension_that_it_divides(kind):
    m = two_axes(kind)  # x: 4, y: 2
    cases = {
        "replicated": ((8, 16), (), ("x",)),
        "rows": ((8, 16), ("y",), (("y", "x"),)),
        "few rows": ((4, 16), ("y",), ("y", "x")),
        "columns": ((3, 16), (None, "y"), (None, ("y", "x"))),
        "there": ((8, 16), (None, "x"), (None, "x")),
        "none": ((3, 5), (), ()),
        "scalar": ((), (), ()),
        "empty": ((0, 3), (), ()),
    }
    p = {k: jnp.ones(shape) for k, (shape, *_) in cases.items()}
    p = jax.device_put(p, {k: on(m, *spec) for k, (_, spec, _) in cases.items()})
    where = steepest.shardings(zero(steepest.trace(0.9), axis="x"), p)
    assert specs(where.inner_state.trace) == {k: x[2] for k, x in cases.items()}


@KINDS
def test_updates_return_in_the_sharding_of_the_param(kind):
    m = two_axes(kind)
    p = {"w": jax.device_put(jnp.ones((8, 16)), on(m, None, "y"))}
    tx = zero(steepest.adam(0.1), axis="x")
    state = steepest.init(tx, p)
    for update in (jax.jit(tx.update), tx.update):
        u, new = update(p, state, p)
        assert u["w"].sharding.is_equivalent_to(p["w"].sharding, 2)
        mu = new.inner_state[0].mu["w"]
        assert mu.sharding.is_equivalent_to(on(m, "x", "y"), 2)


@KINDS
@pytest.mark.parametrize("run", ["jit", "eager"])
def test_factors_are_sharded_between_steps(kind, run):
    where = on(_mesh(kind))
    p = {"w": jax.device_put(jnp.eye(8, 16), where)}
    tx = zero(steepest.shampoo(0.1, frequency=1))
    state = steepest.init(tx, p)
    factors = lambda state: state.inner_state.inner_states["shampoo"].inner_state[0]
    update = jax.jit(tx.update) if run == "jit" else tx.update
    u, state = update(p, state, p)
    assert u["w"].sharding.is_equivalent_to(where, 2)
    found = [x.sharding for x in factors(state).factors["w"]]
    assert specs(found) == [("data",), ("data",)]


def test_the_inner_transformation_gets_parts():
    """Of gradients and params, also if it keeps no state."""
    seen = []

    def note(g, p):
        seen.extend(jax.typeof(x["w"]).sharding.spec[0] for x in (g, p))
        return g

    p, tx = _params(on(_mesh(EXPLICIT))), zero(steepest.stateless(note))
    jax.jit(tx.update)(p, steepest.init(tx, p), p)
    assert seen == ["data", "data"]


def test_packed_params():
    """Small leaves are sharded in one vector, if the params are packed."""
    inner = steepest.packed(steepest.adam(0.1), below=10)
    small = {k: jnp.ones(8) for k in "abcd"}
    packed = steepest.pack(inner, jax.device_put(small, on(_mesh())))
    state = steepest.init(zero(inner), packed)
    assert specs(state.inner_state[0].mu.vectors[0].sharding) == ("data",)
    p, state = steepest.make_step(zero(inner))(packed, state, packed)
    assert all(x.sharding.is_fully_replicated for x in jax.tree.leaves(p))


def test_describe_shows_what_is_not_sharded():
    description = steepest.describe(zero(steepest.adamw(0.1)), _params(on(_mesh())))
    rows = {line.path: line.sharding for line in description.lines}
    assert rows["['v']"] == ("P(None, 'data')",)
    (note,) = description.notes
    assert note.startswith("zero: ['c'] of shape (3,) has no dimension that")
    assert f"note: {note}" in str(description)
    masked = steepest.masked(zero(steepest.adamw(0.1)), "w")
    assert not steepest.describe(masked, _params(on(_mesh()))).notes


def test_on_one_device_nothing_changes():
    p, tx = _params(), zero(steepest.adam(0.1))
    state = tx.init(p)
    u, state = jax.jit(tx.update)(p, state, p)
    want, _ = steepest.adam(0.1).update(p, steepest.adam(0.1).init(p), p)
    jax.tree.map(partial(np.testing.assert_allclose, rtol=1e-6), u, want)
    assert jax.tree.structure(jax.jit(tx.init)(p)) == jax.tree.structure(state)


def test_resume_on_another_mesh_and_without_zero():
    tx, p, g = zero(steepest.adam(0.1)), _params(on(_mesh())), _params(on(_mesh()), 1)
    _, state = steepest.make_step(tx)(p, steepest.init(tx, p), g)
    p = _params(on(jax.make_mesh((2,), ("data",), devices=jax.devices()[:2])))
    moved = pickle.loads(pickle.dumps(jax.device_get(state)))
    moved = steepest.place(moved, steepest.shardings(tx, p))
    assert moved.inner_state[0].mu["w"].addressable_shards[0].data.shape == (32, 32)
    plain = steepest.place(state.inner_state, steepest.shardings(steepest.adam(0.1), p))
    jax.tree.map(np.testing.assert_array_equal, moved.inner_state, plain)
    next_p, moved = steepest.make_step(tx)(p, moved, _params(p["w"].sharding, 1))
    assert next_p["w"].sharding.is_fully_replicated


def test_a_state_that_was_made_inside_jit_is_an_error():
    p, tx = _params(on(_mesh())), zero(steepest.adam(0.1))
    state = jax.jit(tx.init)(p)
    with pytest.raises(
        ValueError, match="make_step: the state of `zero` does not know"
    ):
        steepest.make_step(tx)(p, state, p)


def test_errors(as_users_do):
    p = _params(on(_mesh()))
    with pytest.raises(TypeError, match="zero: axis is a int, expected the name of a"):
        zero(steepest.adam(0.1), 3)  # pyright: ignore
    with pytest.raises(ValueError, match=r"zero: axis is 'model', but .* axes 'data'"):
        steepest.init(zero(steepest.adam(0.1), "model"), p)
    tx = zero(steepest.adam(0.1))
    with pytest.raises(ValueError, match=r"zero: the tree has 1 arrays, and .* had 4"):
        tx.update({"w": p["w"]}, steepest.init(tx, p), p)
