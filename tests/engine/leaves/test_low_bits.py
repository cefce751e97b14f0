"""Which memory is stored in few bits."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steepest
from steepest.engine.leaves import Leaves, LowBits
from steepest.engine.leaves._low_bits import why_exact, why_wide
from steepest.numerics import copy_of, first_moment, is_coded, second_moment


@pytest.mark.parametrize(
    "path, shape, says",
    [
        ("mlp/kernel", (64, 64), None),
        ("head", (64, 100), None),
        ("mlp/kernel", (63, 64), "fewer than 4096 elements"),
        ("mlp/bias", (5000,), "a vector"),
        ("mlp/kernel", (1, 5000, 1), "a vector"),
        ("mlp/kernel", (5000, 15), "rows of fewer than 16 elements"),
        ("wte", (100, 64), "embeds: 'wte' in its path"),
        ("layer_norm/w", (100, 64), "a norm: 'norm' in its path"),
        ("moe/router", (64, 64), "a router: 'router' in its path"),
    ],
)
def test_small_and_sensitive_leaves_stay(path, shape, says):
    assert why_wide(path, jnp.ones(shape)) == says


def test_only_real_arrays_are_stored_so():
    assert why_wide("w", jnp.ones((64, 64), jnp.complex64)) == "it is not real"
    assert why_wide("w", jnp.ones((64, 64), int)) == "it is not real"
    assert why_wide("w", [jnp.ones((64, 64))]) == "it is not real"


def test_what_is_not_an_average_stays():
    assert why_exact(copy_of) == "its precision matters"
    assert why_exact(first_moment().exact) == "its precision matters"
    assert why_exact(second_moment(jnp.float32)) == "it has its own dtype"
    assert why_exact(second_moment()) is None
    assert why_exact(lambda p: p) == "its precision matters"  # nothing is known


def test_the_initial_memory_and_the_reasons():
    p = {"w": jnp.ones((64, 64)), "wpe": jnp.ones((64, 64)), "none": None}
    rule = steepest.engine.plan_of("", "", steepest.scale_by_yogi()).links[0].body
    none, w, wpe = LowBits("int8").begin(rule, Leaves(p))
    assert none is None
    assert (w.memory["mu"].kind, w.memory["nu"].kind) == ("signed8", "unsigned8")
    assert jnp.allclose(w.memory["nu"].decode(), 1e-6)
    assert (w.why, wpe.why) == ("", "embeds: 'wpe' in its path")
    assert not is_coded(wpe.memory["mu"])


def test_each_reason_is_given_once():
    p = [jnp.ones((64, 64))]
    soap = steepest.soap(0.1, memory_dtype="int8")
    (line,) = steepest.describe(soap, p).lines
    assert line.stays_wide == "factors: it has its own dtype; bases: float16"


@pytest.mark.parametrize(
    "dtype, side, kept",
    [
        ("float32", 96, ["float16", "float16"]),
        ("float32", 16, ["float32", "float16"]),  # too small to save anything
        ("bfloat16", 96, ["float16", "float16"]),
        ("float64", 96, ["float64", "float64"]),
    ],
)
def test_bases_are_stored_in_float16(dtype, side, kept):
    with jax.enable_x64(True):
        p = {"w": jax.random.normal(jax.random.key(0), (side, 96), dtype)}
        tx = steepest.keeping(steepest.scale_by_soap(frequency=2), memory_dtype="int8")
        state = tx.init(p)
        before = state.bases["w"]
        for _ in range(4):
            _, state = jax.jit(tx.update)(p, state)
            assert [x.dtype for x in state.bases["w"]] == kept
        wide = jnp.float64 if dtype == "float64" else jnp.float32
        assert {x.dtype for x in state.factors["w"]} == {jnp.dtype(wide)}
        for x, first in zip(state.bases["w"], before, strict=True):
            assert not jnp.array_equal(x, first)
            x = np.float64(x)
            np.testing.assert_allclose(x.T @ x, np.eye(len(x)), atol=1e-3)


def test_init_is_not_computed_by_the_compiler():
    """XLA would fold the largest element of zeros, which takes seconds."""
    tx = steepest.adam(1e-3, memory_dtype="int8")
    program = str(jax.make_jaxpr(tx.init)(jnp.ones((64, 64))))
    before, _, _ = program.partition("reduce_max")
    assert "optimization_barrier" in before
