"""Where a leaf stands, in words; and where two trees part."""

from typing import NamedTuple

import jax.numpy as jnp
import pytest
from hypothesis import given, settings, strategies as st

from steepest.tree import first_difference, leaf_paths

NAMES = "updates", "params"
trees = st.recursive(
    st.none() | st.integers(0, 9),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
    ),
    max_leaves=6,
)


class Layer(NamedTuple):
    w: object
    b: object


@pytest.mark.parametrize(
    "tree, paths",
    [
        ({}, []),
        (None, ["(the tree itself)"]),
        (jnp.ones(2), ["(the tree itself)"]),
        ({"b": 1, "a": 2}, ["['a']", "['b']"]),
        ([1, (2, None)], ["[0]", "[1][0]", "[1][1]"]),
        ({"mlp": Layer(1, [2])}, ["['mlp'].w", "['mlp'].b[0]"]),
    ],
)
def test_paths_read_as_python_writes_them(tree, paths):
    assert leaf_paths(tree) == paths


@settings(max_examples=30, deadline=None)
@given(trees)
def test_a_path_leads_to_its_leaf(tree):
    """`None` is a leaf: it can be what is missing."""
    for path in leaf_paths({"tree": tree}):
        found = eval(f"root{path}", {"root": {"tree": tree}})
        assert found is None or isinstance(found, int)


@pytest.mark.parametrize(
    "mine, other, said",
    [
        ({"w": 1, "b": 2}, {"w": 1}, "leaf ['b'] is in the updates and not in the"),
        ({"w": 1}, {"w": 1, "b": 2}, "leaf ['b'] is in the params and not in the"),
        ({"w": 1, "b": 2}, {"w": 1, "c": 2}, "leaf ['b'] is in the updates and not"),
        ({"w": [1, 2]}, {"w": [1]}, "leaf ['w'][1] is in the updates and not"),
        ({"w": 1}, {"w": {"k": 1}}, "leaf ['w'] is in the updates and not"),
        ({"w": 1, "b": None}, {"w": 1}, "leaf ['b'] is in the updates and not"),
    ],
)
def test_a_difference_names_its_first_leaf(mine, other, said):
    assert first_difference(mine, other, NAMES).startswith(said)


@settings(max_examples=30, deadline=None)
@given(trees, trees)
def test_a_difference_is_the_same_from_the_other_side(mine, other):
    """Where only one tree has a leaf more, both sides name it."""
    a = first_difference({"x": mine}, {"x": mine, "y": other}, NAMES)
    b = first_difference({"x": mine, "y": other}, {"x": mine}, NAMES[::-1])
    if leaf_paths(other):
        assert a == b
        assert a.startswith("leaf ['y']")


@pytest.mark.parametrize(
    "mine, other, kinds",
    [([1, 2], (1, 2), ("[*, *]", "(*, *)")), ({"w": 1}, {"w": None}, ("*}", "None}"))],
)
def test_equal_paths_leave_the_kinds_to_tell(mine, other, kinds):
    said = first_difference(mine, other, NAMES)
    assert said.startswith("the updates are PyTreeDef(")
    before, after = said.split(" and the params are ")
    assert kinds[0] in before and kinds[1] in after
