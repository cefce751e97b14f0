"""Memory that is kept in stacks of matrices."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.engine.leaves import (
    collected,
    dealt,
    Leaves,
    Stacked,
    StackLayout,
    unstacked,
)
from steepest.numerics import encode

SHAPES = (3, 4), (2, 3, 4), (6,), (1, 3, 4)  # the last is one matrix of 3 x 4
LEAVES = Leaves(dict(zip("abcd", map(np.zeros, SHAPES), strict=True)))
FOLDED = (3, 4), (2, 3, 4), (1, 6), (3, 4)
LAYOUT = StackLayout(LEAVES.treedef, SHAPES, FOLDED, ((0, 1, 3),), 3)


@pytest.mark.parametrize(
    "many, devices, order",
    [(5, 2, [0, 2, 4, 1, 3, 0]), (3, 8, [0, 1, 2, 0, 0, 0, 0, 0]), (3, 1, [0, 1, 2])],
)
def test_matrices_are_dealt_to_the_devices(many, devices, order):
    x = jnp.arange(many)
    stack = dealt(x, devices)
    assert stack.tolist() == order
    np.testing.assert_array_equal(collected(stack, devices, many), x)


def _memory(code=None):
    """An array like each leaf, and a pair of factors, of which one may be missing."""
    keys = iter(jax.random.split(jax.random.key(0), 8))
    likes = {
        k: jax.random.normal(next(keys), s) for k, s in zip("abcd", SHAPES, strict=True)
    }
    if code is not None:
        likes = {k: encode(x, code) for k, x in likes.items()}
    outer = {"a": (), "b": (2,), "c": (), "d": ()}
    sides = {
        k: (jax.random.normal(next(keys), (*s, 3, 3)), None) for k, s in outer.items()
    }
    views = ((False,), (False,), (True,)), ((False,), (False,), (False,))
    return [(likes, views[0]), (sides, views[1])]


@pytest.mark.parametrize("code", [None, "signed8", "dithered4"])
def test_a_stack_and_back(code):
    for tree, views in _memory(code):
        stacked = Stacked.of(replace(LAYOUT, viewed=(views,)), tree)
        for x in jax.tree.leaves(stacked.stacks):
            assert x.shape[:2] == (6, 3)  # four matrices, and copies for three devices
        equal = lambda x, y: np.testing.assert_array_equal(x, y)
        jax.tree.map(equal, stacked.plain, tree)
        assert stacked.whole[0] is tree["c"]


def test_shapes():
    """As `restore_as` needs them: without an array."""
    tree, views = _memory()[0]
    layout = replace(LAYOUT, viewed=(views,))
    shapes = jax.eval_shape(lambda: tree)
    stacked = Stacked.of(layout, shapes)
    assert jax.tree.leaves(stacked.stacks)[0].shape == (6, 3, 4)
    assert stacked.plain == shapes


def test_inside_a_state():
    tree, views = _memory()[0]
    stacked = Stacked.of(replace(LAYOUT, viewed=(views,)), tree)
    state = {"mu": stacked, "count": 3}
    assert unstacked(state)["count"] == 3
    assert unstacked(state)["mu"]["b"].shape == (2, 3, 4)
    names = jax.tree.map(lambda x: str(x.shape), state["mu"])
    assert unstacked(names, whole=True) == {
        "a": "(6, 3, 4)",
        "b": "(6, 3, 4)",
        "c": "(6,)",
        "d": "(6, 3, 4)",
    }
    ((path, x),) = stacked.by_path
    assert path == (jax.tree_util.DictKey("c"),) and x is tree["c"]
