"""Arithmetic on trees, leaf by leaf."""

import operator
from collections.abc import Callable
from typing import TypeVar

import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, PyTree

from .. import check
from ._map import map_numbers

T = TypeVar("T")


def add(tree_x: PyTree, tree_y: PyTree, *other_trees: PyTree) -> PyTree:
    """`x + y + ...`, leaf by leaf.

    Args:
        tree_x: a tree.
        tree_y: a tree of the same structure.
        other_trees: more trees of the same structure.

    >>> add({"w": 1}, {"w": 2}, {"w": 3})
    {'w': 6}
    """
    others = {f"other_trees[{k}]": tree for k, tree in enumerate(other_trees)}
    return map_numbers("add", _add_all, tree_x=tree_x, tree_y=tree_y, **others)


def sub(tree_x: PyTree, tree_y: PyTree) -> PyTree:
    """`x - y`, leaf by leaf.

    Args:
        tree_x: a tree.
        tree_y: a tree of the same structure.
    """
    return map_numbers("sub", operator.sub, tree_x=tree_x, tree_y=tree_y)


def mul(tree_x: PyTree, tree_y: PyTree) -> PyTree:
    """`x * y`, leaf by leaf.

    Args:
        tree_x: a tree.
        tree_y: a tree of the same structure.
    """
    return map_numbers("mul", operator.mul, tree_x=tree_x, tree_y=tree_y)


def div(tree_x: PyTree, tree_y: PyTree) -> PyTree:
    """`x / y`, leaf by leaf.

    Args:
        tree_x: a tree.
        tree_y: a tree of the same structure.
    """
    return map_numbers("div", operator.truediv, tree_x=tree_x, tree_y=tree_y)


def scale(scalar: ArrayLike, tree: PyTree) -> PyTree:
    """`scalar * x` for every leaf `x`.

    Args:
        scalar: a number, or an array that broadcasts with every leaf.
        tree: a tree.
    """
    if not check.is_number(scalar):
        raise TypeError(
            f"scale: scalar {check.kind(scalar)}, expected an array or a number. "
            "The tree is the second argument."
        )
    return map_numbers("scale", lambda x: scalar * x, {"scalar": scalar}, tree=tree)


def add_scale(tree_x: PyTree, scalar: ArrayLike, tree_y: PyTree) -> PyTree:
    """`x + scalar * y`, leaf by leaf; `None` where `x` is `None`.

    Args:
        tree_x: a tree.
        scalar: a number, or an array that broadcasts with every leaf.
        tree_y: a tree of the same structure.
    """
    (factor,) = check.array("add_scale", scalar=scalar)
    step = _unless_none(lambda x, y: x + factor * y)
    trees = {"tree_x": tree_x, "tree_y": tree_y}
    return map_numbers(
        "add_scale", step, {"scalar": factor}, none_is_leaf=True, **trees
    )


def where(condition: ArrayLike, tree_x: PyTree, tree_y: PyTree) -> PyTree:
    """`x` where the condition holds, else `y`.

    Args:
        condition: a boolean, or an array of booleans that broadcasts with every leaf.
        tree_x: a tree.
        tree_y: a tree of the same structure.
    """
    check.array("where", condition=condition)

    def choose(x: ArrayLike, y: ArrayLike) -> Array:
        return jnp.where(condition, x, y)

    numbers = {"condition": condition}
    return map_numbers("where", choose, numbers, tree_x=tree_x, tree_y=tree_y)


def clip(
    tree: PyTree, min_value: ArrayLike | None = None, max_value: ArrayLike | None = None
) -> PyTree:
    """Clip every entry to `[min_value, max_value]`.

    Args:
        tree: a tree of real numbers.
        min_value: the smallest value, or `None` for no bound.
        max_value: the largest value, or `None` for no bound.
    """
    bounds = {"min_value": min_value, "max_value": max_value}
    bounds = {name: x for name, x in bounds.items() if x is not None}
    check.unless_array(check.real, "clip", **bounds)
    known = [x for x in bounds.values() if isinstance(x, int | float)]
    if len(known) == 2 and known[0] > known[1]:
        raise ValueError(
            f"clip: min_value is {min_value} and max_value is {max_value}, expected "
            "min_value <= max_value."
        )
    inside = lambda x: jnp.clip(x, min_value, max_value)
    return map_numbers("clip", inside, bounds, real=True, tree=tree)


def conj(tree: PyTree) -> PyTree:
    """The complex conjugate of every entry.

    Args:
        tree: a tree.
    """
    return map_numbers("conj", jnp.conj, tree=tree)


def real(tree: PyTree) -> PyTree:
    """The real part of every entry.

    Args:
        tree: a tree.
    """
    return map_numbers("real", jnp.real, tree=tree)


def _add_all(x: PyTree, y: PyTree, *others: PyTree) -> PyTree:
    return sum(others, x + y)


def _unless_none(f: Callable[..., T]) -> Callable[..., T | None]:
    return lambda x, *rest: None if x is None else f(x, *rest)
