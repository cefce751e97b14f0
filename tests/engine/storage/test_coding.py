"""Memory in few bits, for transformations that are not made of rules."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import steepest
from steepest.engine.storage._coding import AVERAGES, low_bits_of
from steepest.numerics import is_coded

P = {"w": jnp.linspace(-1, 1, 4096).reshape(64, 64), "b": jnp.ones(3)}
INNER = {
    "optax": lambda: optax.adam(0.1),
    "lookahead": lambda: steepest.chain(
        steepest.ema(0.9), steepest.apply_if_finite(steepest.adam(0.1), 3)
    ),
    "steps": lambda: steepest.MultiSteps(steepest.adam(0.1), 2),
}


def _coded(tree):
    return [x for x in jax.tree.leaves(tree, is_leaf=is_coded) if is_coded(x)]


@pytest.mark.parametrize("name", INNER)
def test_averages_of_any_transformation(name):
    """Also inside wrappers and in Optax. Other memory is unchanged."""
    plain = INNER[name]()
    tx = steepest.keeping(plain, memory_dtype="int8")
    state, wide = tx.init(P), plain.init(P)
    kinds = [x.kind for x in _coded(state)]
    assert kinds == ["signed8"] * (name == "lookahead") + ["signed8", "unsigned8"]
    for _ in range(3):
        with jax.numpy_dtype_promotion("standard"):  # for Optax
            u, new = tx.update(P, state, P)
            v, wide = plain.update(P, wide, P)
        assert jax.tree.structure(new) == jax.tree.structure(state)
        state = new
    np.testing.assert_allclose(u["w"], v["w"], atol=0.02)
    np.testing.assert_allclose(u["b"], v["b"], 1e-6)
    assert steepest.describe(tx, P).state_bytes < 0.6 * 4 * 2 * 4096 + 40_000


def test_a_step_without_change_leaves_the_codes():
    """Between its steps, `MultiSteps` returns the state of its optimizer unchanged."""
    tx = steepest.keeping(INNER["steps"](), memory_dtype="int8")
    _, a = tx.update(P, tx.init(P), P)
    _, a = tx.update(P, a, P)
    _, b = tx.update(P, a, P)
    for x, y in zip(_coded(a), _coded(b), strict=True):
        np.testing.assert_array_equal(x.codes, y.codes)
        np.testing.assert_array_equal(x.scales, y.scales)


def test_the_table_names_fields_that_exist():
    for name, fields in AVERAGES.items():
        State = getattr(steepest, name, None) or getattr(steepest.contrib, name, None)
        assert set(fields) <= set((State or getattr(optax, name))._fields), name


def test_names():
    assert low_bits_of("int8") == low_bits_of(jnp.int8) == low_bits_of(np.dtype("int8"))
    assert low_bits_of("float8").name == "float8"
    assert (
        low_bits_of(None) is low_bits_of("bfloat16") is low_bits_of(jnp.int16) is None
    )
