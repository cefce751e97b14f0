"""Finding and replacing values in a state by name."""

import collections
import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import steepest
from steepest import tree
from steepest.tree_utils import NamedTupleKey

W = {"w": jnp.ones(2), "v": jnp.ones(1)}


class Pair(NamedTuple):
    x: Any
    y: Any = None


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class Box:
    a: Any


@jax.tree_util.register_pytree_node_class
class Bag:
    def __init__(self, inside):
        self.inside = inside

    def tree_flatten(self):
        return (self.inside,), None

    @classmethod
    def tree_unflatten(cls, _, children):
        return cls(*children)


def states():
    """States of both libraries with the same names."""
    for lib in (steepest, optax):
        yield {
            "adam": lib.adam(lambda count: 0.1).init(W),
            "nested": lib.chain(lib.clip(1.0), lib.chain(lib.sgd(0.1, 0.9))).init(W),
            "masked": lib.masked(lib.adam(0.1), {"w": True, "v": False}).init(W),
            "partition": lib.partition(
                {"a": lib.adam(0.1), "b": lib.sgd(0.1, 0.9)}, {"w": "a", "v": "b"}
            ).init(W),
            "injected": lib.inject_hyperparams(lib.adam)(0.1).init(W),
            "mixed": [Pair(1, Pair(2, 3)), {"Pair": 4, "b": {"x": 5}, "a": {"x": 6}}],
            "none": {"a": None, "b": Pair(None), "c": (), "d": {}},
            "box": {"q": Box({"a": 1}), "r": [Bag(Pair(7))]},
            "orders": {"b": {"a": 1, "x": {"x": 2}}, "a": {"c": {"a": 2}}},
            "ordered": collections.OrderedDict(b={"x": 1}, a={"x": 2}),
            "leaf": 1.0,
        }


KEYS = [
    *("count", "mu", "nu", "trace", "w", "v", "learning_rate", "inner_state", "absent"),
    *("ScaleByAdamState", "MaskedNode", "EmptyState", "Pair", "x", "y", "a", "b", "c"),
    *("Box", "d", 0),
]


def shown(found):
    """Paths and values, for classes of either library."""
    return [(str(jax.tree_util.keystr(path)), str(value)) for path, value in found]


def test_everything_is_found_where_optax_finds_it():
    ours, theirs = states()
    for name in ours:
        for key in KEYS:
            found = shown(tree.get_all_with_path(ours[name], key))
            wanted = shown(optax.tree.get_all_with_path(theirs[name], key))
            assert found == wanted, (name, key)


def test_everything_is_replaced_where_optax_replaces_it():
    ours, theirs = states()
    differ = set()
    for name in ours.keys() - {"ordered"}:  # Optax turns it into a plain dict
        for key in (k for k in KEYS if isinstance(k, str)):
            try:
                wanted = optax.tree.set(theirs[name], **{key: "new"})
            except KeyError:
                with pytest.raises(KeyError, match=f"no values matching '{key}'"):
                    tree.set(ours[name], **{key: "new"})
            else:
                found = tree.set(ours[name], **{key: "new"})
                if str(jax.tree.leaves(found)) != str(jax.tree.leaves(wanted)):
                    differ.add((name, key))
    assert differ == {("injected", "count")}


def test_everything_that_is_found_is_replaced():
    """Optax misses matches in a list next to one that it has replaced."""
    state = Pair(1, [Pair(2)])
    assert len(tree.get_all_with_path(state, "x")) == 2
    assert tree.set(state, x=9) == Pair(9, [Pair(9)])
    assert optax.tree.set(state, x=9) == Pair(9, [Pair(2)])


def test_one_is_got_and_many_are_an_error():
    state, _ = next(states())["adam"], None
    np.testing.assert_array_equal(tree.get(state, "mu")["w"], jnp.zeros(2))
    assert type(tree.get(state, "ScaleByScheduleState")).__name__.startswith("ScaleBy")
    assert tree.get(state, "absent") is None
    assert tree.get(state, "absent", 7) == 7
    for t in (tree, optax.tree):
        with pytest.raises(KeyError, match="Found multiple values for 'count'"):
            t.get(state, "count")


def test_the_error_says_where_they_are():
    with pytest.raises(KeyError, match=r"\[0\]ScaleByAdamState.count, \[1\]ScaleBySch"):
        tree.get(next(states())["adam"], "count")


def test_what_is_missing_is_said_with_what_is_there():
    with pytest.raises(KeyError, match="'lr' in a tree with the names 'count', 'mu'"):
        tree.set(next(states())["adam"], lr=1)


def of_adam(path, value):
    return path[-1].tuple_name == "ScaleByAdamState"


def test_a_filter_chooses():
    state = next(states())["adam"]
    assert tree.get(state, "count", filtering=of_adam) == 0
    assert tree.get(state, "count", "none", lambda path, value: False) == "none"
    found = tree.set(state, of_adam, count=5)
    assert (found[0].count, found[1].count) == (5, 0)
    for t in (tree, optax.tree):
        with pytest.raises(KeyError, match="given the filtering operation"):
            t.set(state, lambda path, value: False, count=5)


def test_a_filter_sees_only_what_has_the_name():
    seen = []
    state = Pair(1, Pair(2, 3))
    tree.get_all_with_path(state, "x", lambda path, value: seen.append((path, value)))
    key = lambda name: NamedTupleKey("Pair", name)
    assert seen == [((key("x"),), 1), ((key("y"), key("x")), 2)]


def test_a_filter_may_look_at_values():
    state = {"a": {"lr": 0.1}, "b": {"lr": jnp.ones(2)}}
    big = lambda path, value: np.size(value) > 1
    assert tree.get(state, "lr", filtering=big) is state["b"]["lr"]
    assert tree.set(state, big, lr=3)["a"]["lr"] == 0.1


def test_many_names_at_once_and_the_outermost_wins():
    assert tree.set({"a": {"a": 1, "b": 2}}, a=5) == {"a": 5}
    assert tree.set({"a": {"b": 2}, "c": 1}, b=5, c=6) == {"a": {"b": 5}, "c": 6}
    assert tree.set({"q": Pair(1)}, Pair=3, q=4) == {"q": 4}
    assert tree.set(Pair(1), x=3, Pair=4) == 4
    assert tree.set(Pair(Pair(1), 3), x=Pair(7)) == Pair(Pair(7), 3)


def test_filtering_is_a_name_like_any_other(as_users_do):
    assert tree.set({"filtering": 1, "tree": 2}, filtering=3, tree=4) == {
        "filtering": 3,
        "tree": 4,
    }


def test_what_has_its_own_name_is_found_once():
    """Optax finds it twice, and `get` raises an error."""
    assert tree.get({"Pair": Pair(1)}, "Pair") == Pair(1)


def test_kinds_of_dictionaries_stay():
    x = collections.OrderedDict(b=1, a=collections.defaultdict(int, b=3))
    found = tree.set(x, b=9)
    assert type(found) is collections.OrderedDict
    assert type(found["a"]) is collections.defaultdict
    assert found == {"b": 9, "a": {"b": 9}}


def test_keys_need_not_be_words():
    assert tree.get({("a", 1): 3}, ("a", 1)) == 3
    assert tree.get_all_with_path([5, 6], 1) == []


def test_setting_while_compiled():
    tx = steepest.inject_hyperparams(steepest.sgd)(0.1)

    @jax.jit
    def step(state, rate):
        state = tree.set(state, learning_rate=rate)
        return tx.update(W, state, W)[0], state

    updates, state = step(tx.init(W), 0.5)
    np.testing.assert_allclose(updates["w"], -0.5 * W["w"])
    assert tree.get(state, "learning_rate") == 0.5


def test_the_key_of_a_named_tuple():
    key = NamedTupleKey("A", "b")
    assert str(key) == "A.b"
    assert key == NamedTupleKey(tuple_name="A", name="b") != NamedTupleKey("A", "c")
    assert hash(key) == hash(NamedTupleKey("A", "b"))
    assert repr(key) == repr(optax.tree_utils.NamedTupleKey("A", "b"))
    with pytest.raises(dataclasses.FrozenInstanceError):
        key.name = "c"
