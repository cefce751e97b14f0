"""On a GPU, the formulas of a leaf with memory in 8 bits run in one kernel."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steepest
from steepest.engine.run import _formula, _pass
from steepest.numerics import _tiles, in_tiles

CHAINS = {
    "adamw": lambda: steepest.adamw(1e-2, memory_dtype="int8"),
    "lion": lambda: steepest.lion(1e-3, memory_dtype="int8"),
    "muon": lambda: steepest.muon(1e-2, memory_dtype="int8"),
    "clip and sgd": lambda: steepest.chain(
        steepest.clip_by_global_norm(1.0),
        steepest.sgd(0.1, momentum=0.9, memory_dtype="int8"),
    ),
    "masked": lambda: steepest.masked(
        steepest.adamw(1e-2, memory_dtype="int8"), {"w": True, "v": False, "b": True}
    ),
    "lars": lambda: steepest.lars(0.1, memory_dtype="int8"),  # a whole rule
    "compensated": lambda: steepest.compensated(
        steepest.adamw(1e-2, memory_dtype="int8")
    ),
    "24 bits": lambda: steepest.compensated(
        steepest.adamw(1e-2, memory_dtype="int8"), bits=8
    ),
    "muon, 24 bits": lambda: steepest.compensated(
        steepest.muon(1e-2, memory_dtype="int8"), bits=8
    ),
    "stochastic rounding": lambda: steepest.stochastic_rounding(
        steepest.adamw(1e-2, memory_dtype="int8"), key=0
    ),
    "adamw, int4": lambda: steepest.adamw(1e-2, memory_dtype="int4"),
    "adamw, float8": lambda: steepest.adamw(1e-2, memory_dtype="float8"),
    "lion, int4": lambda: steepest.lion(1e-3, memory_dtype="int4"),
}
HALF = ("compensated", "24 bits", "muon, 24 bits", "stochastic rounding")
# A rule of a whole array, and memory that the kernel does not know.
TWICE = ("lars", "adamw, int4", "adamw, float8", "lion, int4")


@pytest.fixture
def kernels(monkeypatch):
    """As on a machine with one GPU; kernels are interpreted. Lists those that run."""
    ran = []

    def run(how, step, *arguments):
        ran.append(how.__name__)
        options = {"interpret": True} if how is in_tiles else {}
        return how(step, *arguments, **options)

    monkeypatch.setattr(_pass, "on_gpu", lambda: True)
    monkeypatch.setattr(_tiles, "_one_device", lambda: True)
    monkeypatch.setattr(_formula, "_on_cuda", run)
    _formula.joined.cache_clear()
    yield ran
    _formula.joined.cache_clear()


def params(dtype=jnp.float32):
    keys = jax.random.split(jax.random.key(0), 2)
    w = jax.random.normal(keys[0], (64, 96)).astype(dtype)
    v = jax.random.normal(keys[1], (48, 100)).astype(dtype)
    return {"w": w, "v": v, "b": jnp.zeros(8, dtype), "none": None}


def gradients(p, k):
    draw = lambda x: jax.random.normal(jax.random.key(k + x.size), x.shape, x.dtype)
    return jax.tree.map(draw, p)


def by_update(tx):
    def step(p, state, g):
        u, state = tx.update(g, state, p)
        return steepest.apply_updates(p, u), state

    return jax.jit(step)


def run(tx, step, dtype):
    p = params(dtype)
    state = tx.init(p)
    for k in range(3):
        p, state = step(p, state, gradients(p, k))
    return p, state


@pytest.mark.parametrize("name", CHAINS)
def test_a_step_is_the_same_with_kernels(name, kernels, monkeypatch):
    tx = CHAINS[name]()
    dtype = jnp.bfloat16 if name in HALF else jnp.float32
    landed = run(tx, steepest.make_step(tx), dtype)
    updated = run(tx, by_update(tx), dtype)
    assert ("in_tiles" in kernels) == (name not in TWICE)
    assert ("read_twice" in kernels) == (name in TWICE)
    monkeypatch.setattr(_pass, "on_gpu", lambda: False)
    jax.clear_caches()
    plain = run(tx, by_update(tx), dtype)
    for other in (landed, updated):
        assert jax.tree.structure(other) == jax.tree.structure(plain)
        for x, y in zip(jax.tree.leaves(other), jax.tree.leaves(plain), strict=True):
            assert (x.shape, x.dtype) == (y.shape, y.dtype)
        close(numbers(*other), numbers(*plain))


def numbers(p, state):
    """Params, and memory as it is stored; weights of 24 or 32 bits as one number."""
    key = getattr(state, "rng_key", None)
    if key is not None:
        state = state._replace(rng_key=jax.random.key_data(key))
    if not isinstance(state, steepest.combine.CompensatedState):
        return p, state
    return steepest.wide_params(p, state), state._replace(corrections=None)


def close(a, b):
    for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        if jnp.issubdtype(x.dtype, jnp.floating):
            np.testing.assert_allclose(x, y, rtol=4e-5, atol=1e-6)  # 24 bits: 3e-5
        else:  # codes: one halfway between two goes either way
            x, y = np.asarray(x, int), np.asarray(y, int)
            assert np.abs(x - y).max(initial=0) <= 1
            assert (x != y).mean() < 1e-3


ROUNDED = {
    "24 bits": lambda tx: steepest.compensated(tx, bits=8),
    "stochastic rounding": lambda tx: steepest.stochastic_rounding(tx, key=0),
}


@pytest.mark.parametrize("name", ROUNDED)
def test_weights_land_in_the_kernel_with_all_bits_equal(name, kernels, monkeypatch):
    """Also where weights and gradients are infinite, NaN, huge or zero."""
    tx = ROUNDED[name](steepest.sgd(2.0**-7, momentum=0.5, memory_dtype="int8"))

    def ran():
        p = params(jnp.bfloat16)
        w = p["w"].at[0, 3].set(jnp.inf).at[1, 4].set(jnp.nan).at[2].set(0)
        w = w.at[3].mul(2.0**125).at[4].mul(2.0**-133).at[5, 6].set(-jnp.inf)
        p, state = {**p, "w": w}, tx.init(p)
        step = steepest.make_step(tx)
        for k in range(4):
            g = gradients(p, k)
            # Powers of two: no product is rounded, so it does not matter whether a
            # product and a sum are rounded once or twice.
            g = jax.tree.map(lambda x: jnp.exp2(jnp.round(jnp.log2(jnp.abs(x)))), g)
            g["w"] = g["w"].at[6, 7].set(jnp.inf).at[7, 8].set(jnp.nan)
            p, state = step(p, state, g)
        return p, state._replace(rng_key=None)

    landed = ran()
    assert kernels and set(kernels) == {"in_tiles"}
    monkeypatch.setattr(_pass, "on_gpu", lambda: False)
    jax.clear_caches()
    for x, y in zip(jax.tree.leaves(landed), jax.tree.leaves(ran()), strict=True):
        wide = np.float32 if jnp.issubdtype(x.dtype, jnp.floating) else int
        np.testing.assert_array_equal(np.asarray(x, wide), np.asarray(y, wide))


def test_a_step_with_a_kernel_has_derivatives():
    """The derivative is that of the formula: a kernel has none."""
    p, g = params()["w"], gradients(params(), 0)["w"]

    def moved(how, rate):
        step = lambda kept, g, n: ((kept[0] - n[0] * g,), None)
        (q,), _ = _formula._on_cuda(how, step, (p,), g, [rate])
        return jnp.sum(q)

    slope = jax.grad(lambda rate: moved(in_tiles, rate))(0.1)
    np.testing.assert_allclose(slope, -jnp.sum(g), rtol=1e-5)
