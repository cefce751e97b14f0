"""The memory of rules, as a table."""

from typing import NamedTuple

import jax.numpy as jnp
import pytest

from steepest.core import Rule
from steepest.engine.leaves import Leaves, MaskedNode, view_through
from steepest.engine.run._memory import Memory


class _One(NamedTuple):
    m: object


class _Two(NamedTuple):
    a: object
    b: object


ONE = Rule("one", lambda g, m: (g, m), _One, memory={"m": jnp.zeros_like})
TWO = Rule(
    "two",
    lambda g, a, b: (g, a, b),
    _Two,
    memory={"a": jnp.zeros_like, "b": jnp.zeros_like},
)


def _memory(states):
    leaves = Leaves({"x": jnp.ones(2), "y": jnp.ones(3)})
    views = [view_through([], leaves) for _ in states]
    return Memory([ONE, TWO][: len(states)], states, views, leaves), leaves


def _tree(x, y):
    return {"x": x, "y": y}


def test_a_row_for_each_leaf_and_back():
    states = [_One(_tree(1, 2)), _Two(_tree(3, 4), _tree(5, 6))]
    memory, _ = _memory(states)
    assert [tuple(map(int, row)) for row in memory.rows] == [(1, 3, 5), (2, 4, 6)]
    memory.rows = [("p", "q", "r"), ("s", "t", "u")]
    assert memory.states([{}, {}]) == [
        _One(_tree("p", "s")),
        _Two(_tree("q", "t"), _tree("r", "u")),
    ]


def test_what_a_rule_does_not_see_has_no_memory():
    leaves = Leaves(_tree(jnp.ones(2), jnp.ones(3)))
    view = view_through([], leaves)
    hide = lambda tree: _tree(tree["x"], MaskedNode())
    view = view._replace(on=[True, False], hide=hide)
    memory = Memory([ONE], [_One(_tree(7, MaskedNode()))], [view], leaves)
    assert [row[0] is None for row in memory.rows] == [False, True]
    assert memory.states([{}]) == [_One(_tree(memory.rows[0][0], MaskedNode()))]


def test_a_state_of_another_kind_is_named():
    with pytest.raises(TypeError, match="one: the state is a _Two, expected a _One"):
        _memory([_Two(_tree(1, 2), _tree(3, 4))])


def test_memory_of_another_shape_is_named():
    memory, leaves = _memory([_One(_tree(jnp.zeros(2), jnp.zeros(2)))])
    memory.check(leaves, 0, [True])
    with pytest.raises(ValueError, match=r"leaf \['y'\] has shape \(3,\) in the upd"):
        memory.check(leaves, 1, [True])
