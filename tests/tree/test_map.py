"""Mapping over several trees: where structures differ, and which leaf is wrong."""

import jax
import jax.numpy as jnp
import pytest

import steepest
from steepest import tree
from steepest.tree import map_numbers, map_trees

from ..unusual import ODD

W = {"w": jnp.ones(2)}
LONG = {"w": jnp.ones(3)}
WORD = {"w": "a word"}
SAID = "leaf ['w'] of the {} is a str, expected an array or a number."
REFUSED = {
    "no function": (
        lambda: map_trees("f", 3, x=W),
        "f: f is a int, expected a function",
    ),
    "none": (
        lambda: tree.add({"w": None}, W),
        "add: ['w'] is None in the tree_x and an array in the tree_y. Pass trees of",
    ),
    "list": (
        lambda: tree.add(W, {"w": [1.0, 2.0]}),
        "add: leaf ['w'] of the tree_y is a list, expected an array or a number.",
    ),
    "word": (lambda: tree.mul(W, WORD), "mul: " + SAID.format("tree_y")),
    "scalar": (
        lambda: tree.scale(jnp.ones(3), W),
        "scale: leaf ['w'] has shape (2,) in the tree and scalar has shape (3,), "
        "expected",
    ),
    "no scalar": (
        lambda: tree.scale("a", W),
        "scale: scalar is a str, expected an array",
    ),
    "add_scale": (
        lambda: tree.add_scale(W, 1.0, LONG),
        "add_scale: leaf ['w'] has shape (2,) in the tree_x and (3,) in the tree_y and",
    ),
    "add_scale none": (
        lambda: tree.add_scale(W, 1.0, {"w": None}),
        "add_scale: leaf ['w'] of the tree_y is a NoneType, expected an array or a "
        "number",
    ),
    "where": (
        lambda: tree.where(jnp.ones(3, bool), W, W),
        "where: leaf ['w'] has shape (2,) in the tree_x and (2,) in the tree_y and "
        "condition has shape (3,), expected shapes that broadcast.",
    ),
    "clip nan": (
        lambda: tree.clip(W, float("nan")),
        "clip: min_value is nan, expected a",
    ),
    "clip word": (
        lambda: tree.clip(W, None, "a"),
        "clip: max_value is a str, expected a",
    ),
    "clip complex": (
        lambda: tree.clip({"w": jnp.array([1j])}, 0.0),
        "clip: leaf ['w'] of the tree is complex64, expected real numbers.",
    ),
    "cast": (lambda: tree.cast(WORD, float), "cast: " + SAID.format("tree")),
    "cast_like": (lambda: tree.cast_like(WORD, W), "cast_like: " + SAID.format("tree")),
    "dtype": (lambda: tree.dtype(WORD), "dtype: " + SAID.format("tree")),
    "zeros_like": (
        lambda: tree.zeros_like(W, 3),
        "zeros_like: dtype is 3, expected a dtype",
    ),
    "fill": (
        lambda: tree.full_like(W, None),
        "full_like: fill_value is a NoneType, expected",
    ),
    "batch": (
        lambda: tree.batch_shape(WORD, (1,)),
        "batch_shape: " + SAID.format("tree"),
    ),
    "decay": (
        lambda: tree.update_moment(W, W, -0.1, 1),
        "update_moment: decay is -0.1, but is usually a number in [0, 1].",
    ),
    "order": (
        lambda: tree.update_moment_per_elem_norm(W, W, 0.9, "a"),
        "update_moment_per_elem_norm: order is a str, expected a number that is "
        "finite.",
    ),
    "eps": (
        lambda: tree.update_infinity_moment(W, W, 0.9, -1.0),
        "update_infinity_moment: eps is -1.0, but is usually a number of at least 0.",
    ),
    "bias decay": (
        lambda: tree.bias_correction(W, 1.5, 1),
        "bias_correction: decay is 1.5, but is usually a number in [0, 1].",
    ),
    "params function": (
        lambda: tree.map_params(steepest.adam(0.1), 3, steepest.adam(0.1).init(W)),
        "map_params: f is a int, expected a function.",
    ),
    "params rest": (
        lambda: tree.map_params(
            steepest.adam(0.1), lambda x, y: x, steepest.adam(0.1).init(W), {"v": 1}
        ),
        "map_params: leaf ['w'] is in the state and not in the rest[0]. Pass trees of",
    ),
    "sampler": (
        lambda: tree.random_like(jax.random.key(0), W, 3),
        "random_like: sampler is a int, expected a function.",
    ),
    "norm": (lambda: tree.norm(WORD, 1), "norm: " + SAID.format("tree")),
    "allclose": (lambda: tree.allclose(W, WORD), "allclose: " + SAID.format("b")),
    "unhashable": (
        lambda: tree.get(W, ["w"]),
        "get: key is a list, expected a name: a string",
    ),
    "filtering": (
        lambda: tree.set(W, 3, w=1),
        "set: filtering is a int, expected a function",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_fit_is_named(name, as_users_do):
    call, said = REFUSED[name]
    with pytest.raises((TypeError, *ODD)) as caught:
        call()
    assert str(caught.value).startswith(said)


def test_a_formula_may_take_what_numbers_are_not():
    """Only failures are explained."""
    found = map_numbers("f", lambda x, y: x + y, x={"w": "a"}, y={"w": "b"})
    assert found == {"w": "ab"}


def test_what_cannot_be_explained_is_raised_as_it_is():
    def broken(x):
        raise ValueError("of its own")

    with pytest.raises(ValueError, match=r"^of its own$"):
        map_numbers("f", broken, x=W)
