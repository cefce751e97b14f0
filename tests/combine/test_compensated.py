"""Half-precision weights that train as float32 weights do."""

import copy
import functools
import os
import pickle
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.sharding import AxisType, NamedSharding, PartitionSpec

import steepest
from steepest.numerics import split

# XLA's defaults, which conftest.py changes to compile sooner. With its options XLA
# rounds a product and a sum together in one of two programs, and not in the other (the
# first with JAX 0.11.2, the others with JAX 0.10.2).
_DEFAULTS = {
    "xla_backend_optimization_level": 3,
    "xla_cpu_parallel_codegen_split_count": 32,
    "xla_cpu_use_fusion_emitters": True,
}
_OPTIONS = {k: n for k, n in _DEFAULTS.items() if k in os.environ["XLA_FLAGS"]}
_jit = functools.partial(jax.jit, compiler_options=_OPTIONS)

BITS = pytest.mark.parametrize("bits", [16, 8])


def _weights(dtype=jnp.bfloat16):
    rng = np.random.default_rng(0)
    sizes = {"a": (12, 16), "b": (16,), "c": (16, 4)}
    return {
        k: jnp.asarray(0.3 * rng.normal(size=n), jnp.float32).astype(dtype)
        for k, n in sizes.items()
    }


BATCHES = jnp.asarray(np.random.default_rng(1).normal(size=(200, 8, 12)), jnp.float32)


def _loss(p, x):
    h = jnp.tanh(x.astype(p["a"].dtype) @ p["a"] + p["b"][None])
    y = (h @ p["c"]).astype(jnp.float32)
    return jnp.mean((y - jnp.sin(3 * x[:, :4])) ** 2)


_grad = jax.jit(jax.grad(_loss))


def _to(dtype, tree):
    return jax.tree.map(lambda x: x.astype(dtype), tree)


def _half(tree):
    """The bfloat16 weights, rounded as `compensated` rounds."""
    return jax.tree.map(lambda w: split(w, jnp.bfloat16, jnp.int16)[0], tree)


def _step(tx, gradient: Any = _grad, library=steepest):
    def step(carry, x):
        p, state = carry
        u, state = tx.update(gradient(p, x), state, p)
        return (library.apply_updates(p, u), state), None

    return step


def _wide_step(tx, dtype=jnp.float32):
    """Float32 training, with gradients at the bfloat16 weights."""
    return _step(tx, lambda w, x: _to(dtype, _grad(_half(w), x)))


def _run(step, carry, way, steps):
    if way == "scan":
        go = lambda carry: jax.lax.scan(step, carry, BATCHES[:steps])[0]
        return _jit(go)(carry)
    step = _jit(step) if way == "jit" else step
    for x in BATCHES[:steps]:
        carry, _ = step(carry, x)
    return carry


def _equal(tree, other):
    bits = lambda x: np.asarray(x).tobytes()
    jax.tree.map(lambda x, y: np.testing.assert_equal(bits(x), bits(y)), tree, other)


# Elementwise, of whole trees, of matrices; with and without memory or weight decay.
INNER = {
    "adamw": steepest.adamw(1e-3, weight_decay=0.1),
    "momentum": steepest.sgd(1e-2, 0.9),
    "clipped": steepest.chain(steepest.clip_by_global_norm(0.1), steepest.adam(1e-3)),
    "muon": steepest.muon(1e-3),
    "adafactor": steepest.adafactor(1e-3),
    "lion": steepest.lion(1e-5),
}
# In one program XLA adds and multiplies in one rounding where it likes, and sums in
# any order. With its defaults it chooses the same for both, except for Adafactor.
CASES = [("adafactor", "eager", 3), ("muon", "eager", 3), ("lion", "eager", 3)]
CASES += [("adamw", "scan", 200), ("momentum", "scan", 200), ("clipped", "jit", 200)]
CASES += [("muon", "jit", 200), ("lion", "jit", 200)]


@pytest.mark.parametrize("name, way, steps", CASES)
def test_sixteen_bits_are_float32_training_bit_for_bit(name, way, steps):
    tx, p = INNER[name], _weights()
    w = _to(jnp.float32, p)
    want, want_state = _run(_wide_step(tx), (w, tx.init(w)), way, steps)
    both = steepest.compensated(tx)
    q, state = _run(_step(both), (p, both.init(p)), way, steps)
    _equal(steepest.wide_params(q, state), want)
    _equal(state.inner_state, want_state)
    _equal(q, _half(want))
    assert jax.tree.all(jax.tree.map(lambda x: x.dtype == jnp.bfloat16, q))


def test_optax_applies_the_updates_too():
    tx, p = steepest.compensated(INNER["adamw"]), _weights()
    want = _run(_step(tx), (p, tx.init(p)), "jit", 5)
    with jax.numpy_dtype_promotion("standard"):
        _equal(_run(_step(tx, _grad, optax), (p, tx.init(p)), "jit", 5), want)


def test_steps_that_are_compiled_as_a_whole():
    """`make_step` and `make_train_step` add the updates in the same program."""
    tx = steepest.compensated(INNER["adamw"])
    p, state = _run(_step(tx), (_weights(), tx.init(_weights())), "scan", 4)
    want = steepest.wide_params(p, state)
    step, train = steepest.make_step(tx), steepest.make_train_step(_loss, tx)
    for kind in ("step", "train"):
        p, state = _weights(), tx.init(_weights())
        for x in BATCHES[:4]:
            if kind == "step":
                p, state = step(p, state, _grad(p, x))
            else:
                p, state, _ = train(p, state, x)
            _equal(p, _half(steepest.wide_params(p, state)))
        got = steepest.wide_params(p, state)
        jax.tree.map(
            lambda x, y: np.testing.assert_allclose(x, y, atol=1e-4), got, want
        )


def test_small_steps_of_24_bits_add_up():
    """100 000 steps of 1 / 1024 of the last bit: less than 0.1 % is lost."""
    step_size = 2.0**-18  # float32 can add it exactly
    tx = steepest.compensated(steepest.sgd(1.0), bits=8)
    p = jnp.full(128, 0.5, jnp.bfloat16)
    g = jnp.full(p.shape, -step_size)

    def step(carry, _):
        u, state = tx.update(g, carry[1], carry[0])
        return (steepest.apply_updates(carry[0], u), state), None

    go = jax.jit(lambda carry: jax.lax.scan(step, carry, length=100_000)[0])
    q, state = go((p, tx.init(p)))
    moved = np.asarray(steepest.wide_params(q, state), float) - 0.5
    np.testing.assert_allclose(moved.mean(), 1e5 * step_size, rtol=1e-3)
    assert state.corrections.dtype == jnp.int8


def test_24_bits_stay_near_float32():
    tx, p = INNER["adamw"], _weights()
    w = _to(jnp.float32, p)
    want, _ = _run(_wide_step(tx), (w, tx.init(w)), "scan", 100)
    both = steepest.compensated(tx, bits=8)
    q, state = _run(_step(both), (p, both.init(p)), "scan", 100)
    wide = steepest.wide_params(q, state)
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, atol=3e-3), wide, want)


@BITS
def test_a_compiled_step_has_the_same_bits(bits):
    """`make_step` writes weight and correction without the detour over an update."""
    # No product is rounded: XLA may round a product and a sum once or twice.
    inner = steepest.masked(
        steepest.sgd(2.0**-5, momentum=0.5),
        {"a": True, "b": True, "c": False, "n": True},
    )
    tx = steepest.compensated(inner, bits=bits)
    ends = []
    for step in (steepest.make_step(tx), jax.jit(functools.partial(_applied, tx))):
        p = {**_weights(), "n": None, "b": jnp.ones(16)}
        state = tx.init(p)
        for k in range(20):
            g = _grad({**p, "b": p["b"].astype(jnp.bfloat16)}, BATCHES[k])
            p, state = step(p, state, {**g, "b": g["b"].astype(jnp.float32), "n": None})
        ends.append((p, state.corrections, state.inner_state))
    assert any(bool(jnp.any(c != 0)) for c in jax.tree.leaves(ends[0][1]))
    for x, y in zip(*map(jax.tree.leaves, ends), strict=True):
        np.testing.assert_array_equal(np.asarray(x, float), np.asarray(y, float))


def _applied(tx, p, state, g):
    u, state = tx.update(g, state, p)
    return steepest.apply_updates(p, u), state


@BITS
def test_other_leaves_are_those_of_inner(bits):
    inner = steepest.adam(0.1)
    tx = steepest.compensated(inner, bits)
    p = {
        "h": jnp.ones((2, 2), jnp.float16),
        "w": jnp.ones(3),
        "none": None,
        "empty": jnp.ones((0, 2), jnp.bfloat16),
        "s": jnp.ones((), jnp.bfloat16),
    }
    g = jax.tree.map(lambda x: 0.5 * x, p)
    state = tx.init(p)
    assert state.corrections["w"] is state.corrections["none"] is None
    assert state.corrections["h"].dtype == jnp.dtype(f"int{bits}")
    u, new = tx.update(g, state, p)
    assert jax.tree.map(jax.typeof, new) == jax.tree.map(jax.typeof, state)
    want, _ = inner.update(g, inner.init(p), p)
    np.testing.assert_array_equal(u["w"], want["w"])
    assert u["none"] is None
    q = steepest.apply_updates(p, u)
    assert jax.tree.map(jax.typeof, q) == jax.tree.map(jax.typeof, p)
    np.testing.assert_allclose(np.asarray(q["h"], float), 0.9, 1e-3)


WRAPPERS = {
    "guard": lambda tx: steepest.guard(tx, window=4),
    "MultiSteps": lambda tx: steepest.MultiSteps(tx, 2),
    "chain": lambda tx: steepest.chain(steepest.clip(2.0**-5), tx),
    "masked": lambda tx: steepest.partition(
        {"x": tx, "y": steepest.set_to_zero()}, {"a": "x", "b": "y", "c": "x"}
    ),
}


@pytest.mark.parametrize("name", WRAPPERS)
def test_in_other_wrappers(name):
    """A skipped step moves nothing."""
    tx, p = steepest.sgd(1e-3, 0.9), _weights()
    inner, both = WRAPPERS[name](tx), WRAPPERS[name](steepest.compensated(tx))
    w = _to(jnp.float32, p)
    wide = _wide_step(inner, jnp.bfloat16)
    want, _ = _run(wide, (w, inner.init(w)), "jit", 3)
    q, state = _run(_step(both), (p, both.init(p)), "jit", 3)
    got = steepest.wide_params(q, state)
    _equal(_to(jnp.float32, got), want)
    _equal(q, _half(want))


@BITS
def test_a_skipped_step_changes_no_bit(bits):
    tx = steepest.guard(steepest.compensated(steepest.adam(1e-3), bits))
    p, update = _weights(), jax.jit(tx.update)
    u, state = update(p, tx.init(p), p)
    p = steepest.apply_updates(p, u)
    u, new = update(jax.tree.map(lambda x: x * jnp.nan, p), state, p)
    _equal(steepest.apply_updates(p, u), p)
    data = steepest.tree.unwrap_random_key_data
    _equal(data(new.inner_state), data(state.inner_state))


def test_around_multi_steps():
    """Between its steps the update is zero, and every bit stays."""
    tx, p = steepest.compensated(steepest.MultiSteps(steepest.sgd(1e-3), 2)), _weights()
    q, state = _run(_step(tx), (p, tx.init(p)), "jit", 2)
    new, later = _run(_step(tx), (q, state), "jit", 1)
    _equal((new, later.corrections), (q, state.corrections))
    assert any(map(np.any, jax.tree.leaves(state.corrections)))


def test_a_line_search_gets_the_loss_at_narrow_params():
    seen = set()

    def loss(p):
        seen.add(p["a"].dtype)
        return _loss(p, BATCHES[0])

    tx = steepest.compensated(steepest.lbfgs())
    p = _weights()
    step, state, values = steepest.make_train_step(loss, tx), tx.init(p), []
    for _ in range(5):
        p, state, value = step(p, state)
        values.append(float(value))
    assert seen == {jnp.dtype(jnp.bfloat16)}
    assert values[-1] < 0.9 * values[0]


@BITS
@pytest.mark.parametrize("kind", [AxisType.Auto, AxisType.Explicit], ids=str)
def test_a_mesh_changes_nothing(kind, bits):
    tx = steepest.compensated(steepest.adamw(1e-3), bits)
    p = {"w": jnp.full((16, 32), 0.7, jnp.bfloat16), "b": jnp.ones(8, jnp.float16)}
    update = jax.jit(tx.update)
    want = update(p, tx.init(p), p)
    mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(kind, kind))
    specs = {"w": PartitionSpec("x", "y"), "b": PartitionSpec("y")}
    where = {k: NamedSharding(mesh, spec) for k, spec in specs.items()}
    with jax.set_mesh(mesh):
        q = jax.device_put(p, where)
        state = tx.init(q)
        got = update(q, state, q)
        for tree in (state.corrections, got[0], got[1].corrections):
            for k, x in tree.items():
                assert x.sharding.is_equivalent_to(where[k], x.ndim)
    _equal(got[0], want[0])
    _equal(got[1].corrections, want[1].corrections)


@BITS
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_hard_gradients_leave_everything_finite(dtype, bits):
    tx = steepest.compensated(steepest.adamw(0.1), bits)
    p = jnp.array([0, -0.0, 1e-7, 1, -300, 6e4], dtype)
    state, update = tx.init(p), jax.jit(tx.update)
    for size in (0.0, 1e-30, 1e30, 1.0, -1e30):
        u, state = update(jnp.full(p.shape, size), state, p)
        p = steepest.apply_updates(p, u)
        for x in jax.tree.leaves((p, steepest.wide_params(p, state))):
            assert np.isfinite(np.asarray(x, np.float32)).all()


def test_an_infinite_update_is_seen():
    """As in float32 training: it is not turned into a finite number."""
    tx = steepest.compensated(steepest.sgd(1.0))
    p = jnp.ones(3, jnp.bfloat16)
    u, state = tx.update(jnp.array([jnp.inf, -jnp.inf, jnp.nan]), tx.init(p), p)
    q = np.asarray(steepest.apply_updates(p, u), np.float32)
    np.testing.assert_array_equal(q, [-np.inf, np.inf, np.nan])
    np.testing.assert_array_equal(state.corrections, 0)


def test_from_float32_and_back():
    wide = {**_to(jnp.float32, _weights()), "none": None, "n": jnp.arange(3.0)}
    wide["a"] = wide["a"] + 1e-5
    p = {**_to(jnp.bfloat16, wide), "n": wide["n"]}
    tx = steepest.guard(steepest.compensated(steepest.adam(1e-3)))
    q, state = steepest.from_wide_params(wide, p, tx.init(p))
    assert jax.tree.map(jax.typeof, q) == jax.tree.map(jax.typeof, p)
    _equal(steepest.wide_params(q, state), wide)
    before = steepest.wide_params(p, tx.init(p))
    assert (np.asarray(before["a"]) != np.asarray(wide["a"])).any()


@BITS
def test_the_state_can_be_saved(bits):
    tx, p = steepest.compensated(steepest.adam(1e-3), bits), _weights()
    _, state = jax.jit(tx.update)(p, tx.init(p), p)
    if bits == 16:
        _equal(pickle.loads(pickle.dumps(state)), state)
    assert copy.deepcopy(tx) == tx and pickle.loads(pickle.dumps(tx)) == tx
    assert steepest.from_config(steepest.to_config(tx)) == tx


def test_inner_sees_only_float32():
    """Also an optimizer of the user, or one of Optax."""
    seen = set()

    def update(g, p):
        seen.update(x.dtype for x in jax.tree.leaves((g, p)))
        return g

    tx, p = steepest.compensated(steepest.stateless(update)), _weights()
    jax.eval_shape(lambda p: tx.update(p, tx.init(p), p), p)
    assert seen == {jnp.dtype(jnp.float32)}


@pytest.mark.parametrize("bits, size", [(16, 12), (8, 11)])
def test_bytes(bits, size):
    """Weights and state of AdamW: 11 bytes per param with 24 bits."""
    shapes = {"w": jax.ShapeDtypeStruct((512, 512), jnp.bfloat16)}
    tx = steepest.compensated(steepest.adamw(1e-3), bits)
    known = steepest.describe(tx, shapes)
    assert known.param_bytes + known.lines[0].bytes == size * 512**2
    assert known.shared_bytes <= 16
    assert known.lines[0].memory == ("float32", f"int{bits}")
    assert known.lines[0].handled_by[0].startswith("compensated(scale_by_adam")
    assert known.lines[0].flops


def test_a_state_of_other_params():
    p = _weights()
    tx = steepest.compensated(steepest.sgd(0.1))
    with pytest.raises(
        ValueError, match="is bfloat16, and the state has no correction"
    ):
        tx.update(p, tx.init(_to(jnp.float32, p)), p)
    with pytest.raises(ValueError, match="is float32, and the state has a correction"):
        tx.update(p, tx.init(p), _to(jnp.float32, p))
    with pytest.raises(ValueError, match=r"is int16, expected int8\. To change `bits`"):
        steepest.compensated(steepest.sgd(0.1), 8).update(p, tx.init(p), p)
