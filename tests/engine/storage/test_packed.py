"""Small leaves packed into vectors: the same results, in fewer arrays."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

import steepest
from steepest import pack, Packed, packed, packing, repack, unpack


def _tree(seed, dtype=jnp.float32):
    keys = iter(jax.random.split(jax.random.key(seed), 8))
    draw = lambda *shape: jax.random.normal(next(keys), shape).astype(dtype)
    return {
        "layers": [{"w": draw(3, 4), "b": draw(4)}, {"w": draw(4, 2), "b": draw(2)}],
        "scale": draw(),
        "large": draw(6, 5),
        "none": None,
        "half": draw(3).astype(jnp.bfloat16),
        "other half": draw(2, 2).astype(jnp.bfloat16),
    }


no_decay = lambda p: jax.tree.map(lambda x: x.ndim > 1, p)
TRANSFORMATIONS = {
    "adamw": lambda: steepest.adamw(0.1),
    "masked": lambda: steepest.adamw(0.1, mask=no_decay),
    "scheduled": lambda: steepest.nadam(steepest.linear_schedule(0.1, 0.0, 5)),
    "sgd": lambda: steepest.sgd(0.1),
    "lion": lambda: steepest.lion(0.1, mu_dtype=jnp.bfloat16),
}
each = pytest.mark.parametrize("make", TRANSFORMATIONS.values(), ids=TRANSFORMATIONS)


def _same(a, b):
    assert jax.tree.structure(a) == jax.tree.structure(b)
    for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        assert jnp.result_type(x) == jnp.result_type(y)
        # The last digit of a scalar may differ: XLA computes it outside of loops.
        np.testing.assert_allclose(np.float32(x), np.float32(y), rtol=1e-6)


def _steps(tx, params, n=3):
    state = tx.init(params)
    for seed in range(n):
        g = _tree(seed + 1)
        g = pack(tx, g) if isinstance(params, Packed) else g
        u, state = tx.update(g, state, params)
        params = steepest.apply_updates(params, u)
    return params, state


@each
def test_the_numbers_are_the_same(make):
    tx = packed(make(), below=20)
    want, want_state = _steps(make(), _tree(0))
    params, state = _steps(tx, _tree(0))
    _same(params, want)
    _same(unpack(state), want_state)
    params, state = _steps(tx, pack(tx, _tree(0)))
    assert isinstance(params, Packed)
    _same(unpack(params), want)
    _same(unpack(state), want_state)


def test_a_norm_is_summed_in_another_order():
    make = lambda: steepest.chain(steepest.clip_by_global_norm(0.1), make_adam())
    make_adam = lambda: steepest.adam(0.1)
    want, _ = _steps(make(), _tree(0))
    found, _ = _steps(packed(make(), below=20), _tree(0))
    close = partial(np.testing.assert_allclose, rtol=1e-5, atol=1e-6)
    jax.tree.map(lambda a, b: close(np.float32(a), np.float32(b)), found, want)


def test_there_are_fewer_arrays():
    tx = packed(steepest.adam(0.1), below=20)
    p = pack(tx, _tree(0))
    assert [x.shape for x in jax.tree.leaves(p)] == [(7,), (27,), (6, 5)]
    assert len(jax.tree.leaves(tx.init(p))) == 1 + 2 * 3


def test_what_a_mask_parts_lies_apart():
    tx = packed(steepest.adamw(0.1, mask=no_decay), below=20)
    p = pack(tx, _tree(0))
    assert sorted(x.size for x in p.vectors) == [7, 20]
    assert [x.shape for x in jax.tree.leaves(p.whole)] == [(3,), (6, 5), (2, 2)]


@each
def test_saved_as_if_nothing_were_packed(make):
    tx = packed(make(), below=20)
    params, state = _steps(tx, pack(tx, _tree(0)))
    plain = unpack((params, state))
    assert jax.tree.structure(plain[1]) == jax.tree.structure(make().init(_tree(0)))
    again = repack((pack(tx, _tree(5)), tx.init(_tree(5))), plain)
    _same(again, (params, state))


def test_the_gradient_of_packed_params_is_packed():
    tx = packed(steepest.sgd(0.1), below=20)
    loss = lambda p: sum(jnp.sum(x.astype(float) ** 2) for x in jax.tree.leaves(p))
    found = jax.grad(lambda p: loss(unpack(p)))(pack(tx, _tree(0)))
    assert isinstance(found, Packed)
    _same(unpack(found), jax.grad(loss)(_tree(0)))
    text = jax.jit(jax.grad(lambda p: loss(unpack(p)))).lower(pack(tx, _tree(0)))
    assert " pad(" not in text.as_text("hlo")  # one concatenation, not a sum of pads


def test_one_step_compiles_once(compiles):
    tx = packed(steepest.adam(0.1), below=20)
    step = steepest.make_step(tx)
    params, state = pack(tx, _tree(0)), tx.init(_tree(0))
    first, *others = [pack(tx, _tree(seed)) for seed in range(3)]
    params, state = step(params, state, first)
    with compiles(0):
        for grads in others:
            params, state = step(params, state, grads)


def test_a_training_step_unpacks():
    loss = lambda p: jnp.sum(p["a"] ** 2) + jnp.sum(p["b"] ** 2)
    tx = packed(steepest.sgd(0.25), below=10)
    params = pack(tx, {"a": jnp.ones(2), "b": jnp.ones(3)})
    params, _, value = steepest.make_train_step(loss, tx)(params, tx.init(params))
    assert float(value) == 5
    np.testing.assert_array_equal(unpack(params)["b"], np.full(3, 0.5))


def test_shapes_are_enough_for_a_state():
    tx = packed(steepest.adam(0.1), below=20)
    shapes = jax.eval_shape(lambda: _tree(0))
    found = jax.eval_shape(tx.init, shapes)
    want = tx.init(_tree(0))
    assert jax.tree.structure(found) == jax.tree.structure(want)
    _same_shapes = [x.shape for x in jax.tree.leaves(pack(tx, shapes))]
    assert _same_shapes == [(7,), (27,), (6, 5)]


def test_on_a_cpu_nothing_is_packed_unless_asked_for():
    p = [jnp.ones(3)] * 100
    found = packing(p)
    assert (found.pays, found.leaves, found.small) == (False, 100, 100)
    tx = packed(steepest.adam(0.1))
    assert pack(tx, p) is p
    _same(tx.init(p), steepest.adam(0.1).init(p))
    u, _ = tx.update(p, tx.init(p), p)
    want, _ = steepest.adam(0.1).update(p, steepest.adam(0.1).init(p), p)
    _same(u, want)


def test_where_it_pays(monkeypatch):
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    many, few = [jnp.ones(3)] * 100, [jnp.ones(3)] * 3
    assert packing(many).pays and not packing(few).pays
    assert not packing(many, below=2).pays
    assert isinstance(pack(packed(steepest.adam(0.1)), many), Packed)


@pytest.mark.parametrize(
    "wrap",
    [
        lambda tx: steepest.apply_if_finite(tx, 5),
        lambda tx: steepest.MultiSteps(tx, 2),
        packed,
    ],
)
def test_wrappers_are_refused_and_can_be_around_it(wrap):
    adam, p = steepest.adam(0.1), {"a": jnp.ones(2), "b": jnp.ones(3)}
    with pytest.raises(ValueError, match="is a wrapper, expected an elementwise"):
        packed(wrap(adam))
    if wrap is not packed:
        tx = wrap(packed(adam))
        tx.update(p, tx.init(p), p)


def test_what_looks_at_whole_leaves_is_refused():
    with pytest.raises(ValueError, match="packed: scale_by_trust_ratio may need whole"):
        packed(steepest.lamb(0.1))
    with pytest.raises(ValueError, match="packed: scale_by_lbfgs may"):
        packed(steepest.lbfgs())


def test_errors_name_the_leaf():
    tx = packed(steepest.adam(0.1), below=20)
    p = {"a": jnp.ones(2), "b": jnp.ones(3)}
    state = tx.init(p)
    with pytest.raises(ValueError, match=r"packed: leaf \['b'\] has shape \(4,\) in"):
        tx.update({"a": jnp.ones(2), "b": jnp.ones(4)}, state)
    with pytest.raises(ValueError, match=r"leaf \['a'\] has nothing in the updates"):
        tx.update({"a": None, "b": jnp.ones(3)}, state)
    with pytest.raises(ValueError, match="not all packed in the same way"):
        tx.update(pack(tx, {"a": jnp.ones(3), "b": jnp.ones(3)}), state)
    with pytest.raises(TypeError, match="pack: tx is a Transformation"):
        pack(steepest.adam(0.1), p)
    with pytest.raises(ValueError, match="repack: `tree` has another structure"):
        repack(state, p)


def _on_a_mesh(kind, *spec):
    """Two vectors and a matrix on eight devices; the vectors with this sharding."""
    mesh = jax.make_mesh((8,), ("x",), axis_types=(kind,))
    whole, where = NamedSharding(mesh, P()), NamedSharding(mesh, P(*spec))
    put = lambda shape, where: jax.device_put(jnp.ones(shape), where)
    return {"a": put(8, where), "b": put(8, where), "w": put((8, 8), whole)}


@pytest.mark.parametrize("kind", [AxisType.Auto, AxisType.Explicit])
def test_replicated_leaves_are_packed_wherever_the_state_is_made(kind):
    tx, p = packed(steepest.adam(0.1), below=10), _on_a_mesh(kind)
    states = [
        tx.init(p),
        jax.jit(lambda p: (tx.init(p), p))(p)[0],
        steepest.init(tx, p),
        tx.init(jax.device_get(p)),
    ]
    assert states[0][0].mu.vectors[0].shape == (16,)
    assert len({jax.tree.structure(state) for state in states}) == 1


@pytest.mark.parametrize("kind", [AxisType.Auto, AxisType.Explicit])
def test_sharded_leaves_are_refused(kind):
    tx, p = packed(steepest.adam(0.1), below=10), _on_a_mesh(kind, "x")
    for init in (tx.init, partial(steepest.init, tx), partial(steepest.shardings, tx)):
        with pytest.raises(
            ValueError, match=r"packed: leaf \['a'\] of shape \(8,\) is "
        ):
            init(p)
    if kind is AxisType.Explicit:
        with pytest.raises(ValueError, match=r"packed: leaf \['a'\]"):
            jax.jit(tx.init)(p)
    alone = {"a": p["a"], "w": p["w"]}  # one leaf of its kind is not packed
    assert not isinstance(tx.init(alone)[0].mu, steepest.Packed)
