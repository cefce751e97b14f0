"""The path of a leaf as text; and where two trees differ."""

from typing import NamedTuple

import jax.numpy as jnp
import pytest
from hypothesis import given, settings, strategies as st

from steepest.tree import first_difference, key_paths, leaf_paths, values_by_keys

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


@settings(max_examples=30)
@given(trees)
def test_a_path_leads_to_its_leaf(tree):
    """`None` is a leaf, since it may be the missing one."""
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


@settings(max_examples=30)
@given(trees, trees)
def test_a_difference_is_the_same_from_the_other_side(mine, other):
    """If only one tree has an additional leaf, both orders name it."""
    a = first_difference({"x": mine}, {"x": mine, "y": other}, NAMES)
    b = first_difference({"x": mine, "y": other}, {"x": mine}, NAMES[::-1])
    if leaf_paths(other):
        assert a == b
        assert a.startswith("leaf ['y']")


@pytest.mark.parametrize(
    "mine, other, said",
    [
        ([1, 2], (1, 2), "the root is a list in the updates and a tuple in the params"),
        ({"w": 1}, {"w": None}, "['w'] is a int in the updates and None in the params"),
        (
            {"v": 1, "w": [jnp.ones(2), None]},
            {"v": jnp.ones(2), "w": [None, None]},
            "['w'][0] is an array in the updates and None in the params",
        ),
        (
            {"v": (), "w": [1]},
            {"v": (), "w": (1,)},
            "['w'] is a list in the updates and a tuple in the params",
        ),
    ],
    ids=["lists", "none", "deep", "empty"],
)
def test_equal_paths_leave_the_kinds_to_tell(mine, other, said):
    assert first_difference(mine, other, NAMES) == said


def test_paths_for_patterns_are_joined_keys():
    tree = {"mlp": [Layer(1, None), ()], 3: {"a/b": 2}}
    with_strings = {str(key): x for key, x in tree.items()}
    assert key_paths(with_strings) == ["3/a/b", "mlp/0/w"]
    assert key_paths(1.0) == [""] and key_paths(None) == []


def _is_hole(x):
    return x is None or x == ()


@pytest.mark.parametrize(
    "tree, other, found",
    [
        ({"w": 1, "b": 2}, Layer("W", "B"), ["B", "W"]),
        ([1, {"a": 2, "b": 3}], ("x", "y"), ["x", "y", "y"]),
        ([1, None], ("x",), ["x", None]),
        ([1, None], ("x", "y"), ["x", "y"]),
        ([1, ()], ("x", {"a": "y"}), ["x"]),
        ([1, ()], "x", ["x"]),
        ({"a": [1]}, {"a": [None]}, [None]),
        ([1, 2], ("x",), None),
        ([1], ("x", "y"), None),
        ([1, None], ("x", {"a": "y"}), None),
        ({"a": {"b": 1}}, {"a/b": "x"}, None),
    ],
)
def test_what_another_tree_says_of_each_leaf(tree, other, found):
    assert values_by_keys(tree, other, _is_hole) == found
