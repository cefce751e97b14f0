"""Adding, multiplying and comparing trees, leaf by leaf."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import steepest
from steepest import tree
from tests.oracles._calls import assert_alike, assert_same, called


def some_trees(dtype=jnp.float32):
    x = {"w": jnp.array([[1.0, -2.0]], dtype), "b": [jnp.array(3.0, dtype), None]}
    y = {"w": jnp.array([[0.5, 4.0]], dtype), "b": [jnp.array(-1.5, dtype), None]}
    return x, y


CALLS = {
    "add": lambda t, x, y: t.add(x, y),
    "add_many": lambda t, x, y: t.add(x, y, x, y),
    "sub": lambda t, x, y: t.sub(x, y),
    "mul": lambda t, x, y: t.mul(x, y),
    "div": lambda t, x, y: t.div(x, y),
    "scale": lambda t, x, y: t.scale(2.5, x),
    "scale_by_an_array": lambda t, x, y: t.scale(x["b"][0], x),
    "add_scale": lambda t, x, y: t.add_scale(x, 2.5, y),
    "where": lambda t, x, y: t.where(jnp.array(False), x, y),
    "where_true": lambda t, x, y: t.where(True, x, y),
    "clip": lambda t, x, y: t.clip(x, -1.0, 2.0),
    "clip_below": lambda t, x, y: t.clip(x, min_value=0.5),
    "clip_above": lambda t, x, y: t.clip(x, None, 0.5),
    "conj": lambda t, x, y: t.conj(x),
    "real": lambda t, x, y: t.real(x),
}


@pytest.mark.parametrize("name", CALLS)
def test_as_optax_does(name):
    ours, theirs = (lambda x, y, t=t: CALLS[name](t, x, y) for t in (tree, optax.tree))
    assert_same(ours(*some_trees()), called(theirs, *some_trees()))
    for dtype in ("float16", "bfloat16"):
        assert_alike(ours, theirs, *some_trees(dtype))


@pytest.mark.parametrize("name", CALLS)
def test_as_optax_does_in_64_bits(name):
    with jax.enable_x64(True):
        x, y = some_trees(jnp.float64)
        assert_same(CALLS[name](tree, x, y), called(CALLS[name], optax.tree, x, y))


@pytest.mark.parametrize("name", ["conj", "real", "add_scale"])
def test_complex_numbers(name):
    x, y = jax.tree.map(lambda x: x + 1j, some_trees(jnp.complex64))
    assert_same(CALLS[name](tree, x, y), called(CALLS[name], optax.tree, x, y))


def test_compiled_too():
    x, y = some_trees()
    f = lambda x, y: [call(tree, x, y) for call in CALLS.values()]
    assert_same(jax.jit(f)(x, y), f(x, y))


def test_what_a_mask_has_taken_out_stays_out():
    x = {"w": jnp.ones(2), "v": steepest.MaskedNode()}
    assert tree.add(x, x)["v"] == steepest.MaskedNode()
    assert tree.add_scale(x, 2.0, x)["v"] == steepest.MaskedNode()


def test_python_numbers_stay_python_numbers():
    assert tree.add({"a": 1}, {"a": 2}) == {"a": 3}
    assert tree.scale(2, {"a": 3}) == {"a": 6}
    assert tree.div(1, 4) == 0.25


def test_add_scale_leaves_none_where_x_is_none():
    """Also if `y` is not."""
    assert tree.add_scale({"a": None}, 2.0, {"a": jnp.ones(1)}) == {"a": None}


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "where", "add_scale"])
def test_another_structure_is_named(name):
    x, y = {"w": jnp.ones(1), "b": jnp.ones(1)}, {"w": jnp.ones(1)}
    with pytest.raises(ValueError, match=r"\['b'\]"):
        CALLS[name](tree, {**x}, y)
    with pytest.raises(ValueError):
        called(CALLS[name], optax.tree, x, y)


def test_an_array_against_none_is_a_type_error():
    for t in (tree, optax.tree):
        with pytest.raises(TypeError):
            t.add({"a": jnp.ones(1)}, {"a": None})


def test_complex_numbers_have_no_order():
    with pytest.raises(ValueError):
        tree.clip(jnp.array([1j]), 0, 1)


def test_empty_trees():
    assert tree.add({}, {}) == {}
    assert tree.scale(2.0, []) == []
    assert tree.add(None, None) is None


def test_where_broadcasts_its_condition():
    x, y = jnp.ones((2, 2)), jnp.zeros((2, 2))
    rows = jnp.array([[True], [False]])
    np.testing.assert_array_equal(tree.where(rows, x, y), [[1, 1], [0, 0]])
