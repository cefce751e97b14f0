"""What a masked transformation is called with."""

import jax.numpy as jnp
import pytest

from steepest.engine.leaves import Leaves, Mask, MaskedNode, Window

TREE = {"a": jnp.array(1.0), "b": jnp.array(2.0)}
HOLE = MaskedNode()


def _window():
    view = Mask("test", {"a": True, "b": False}).view(Leaves(TREE))
    return Window("test", view, TREE)


def test_the_rest_is_hidden_and_put_back():
    window = _window()
    assert window.updates == {"a": TREE["a"], "b": HOLE}
    back = window.back({"a": jnp.array(9.0), "b": HOLE})
    assert {k: float(x) for k, x in back.items()} == {"a": 9, "b": 2}


def test_params_are_hidden_alike():
    assert _window().params(None) is None
    assert _window().params(TREE)["b"] == HOLE


def test_a_function_of_the_params_sees_all_of_them():
    f = lambda p: p["a"] + 10 * p["b"]
    extra = _window().extra({"value_fn": f, "x": 3}, TREE, all_trees=False)
    assert float(extra["value_fn"]({"a": jnp.array(5.0), "b": HOLE})) == 25
    assert extra["x"] == 3


def test_a_gradient_function_returns_what_is_seen():
    extra = _window().extra({"grad_fn": lambda p: p}, TREE, all_trees=False)
    assert extra["grad_fn"]({"a": jnp.array(5.0), "b": HOLE})["b"] == HOLE


@pytest.mark.parametrize("all_trees", [False, True])
def test_trees_like_the_updates(all_trees):
    extra = _window().extra({"grad": TREE, "other": TREE}, TREE, all_trees=all_trees)
    assert extra["grad"]["b"] == HOLE
    assert (extra["other"]["b"] == HOLE) == all_trees
