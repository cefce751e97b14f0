"""Trees as vectors: sums, differences, products, quotients, multiples."""

import operator
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import PyTree

from ._map import map_trees


def add(tree_x: PyTree, tree_y: PyTree, *other_trees: PyTree) -> PyTree:
    """`x + y + ...`, leaf by leaf.

    Args:
        tree_x: a tree.
        tree_y: a tree of the same structure.
        other_trees: more of them.

    >>> add({"w": 1}, {"w": 2}, {"w": 3})
    {'w': 6}
    """
    others = {f"other_trees[{k}]": tree for k, tree in enumerate(other_trees)}
    return map_trees("add", _add_all, tree_x=tree_x, tree_y=tree_y, **others)


def sub(tree_x: PyTree, tree_y: PyTree) -> PyTree:
    """`x - y`, leaf by leaf.

    Args:
        tree_x: a tree.
        tree_y: a tree of the same structure.
    """
    return map_trees("sub", operator.sub, tree_x=tree_x, tree_y=tree_y)


def mul(tree_x: PyTree, tree_y: PyTree) -> PyTree:
    """`x * y`, leaf by leaf.

    Args:
        tree_x: a tree.
        tree_y: a tree of the same structure.
    """
    return map_trees("mul", operator.mul, tree_x=tree_x, tree_y=tree_y)


def div(tree_x: PyTree, tree_y: PyTree) -> PyTree:
    """`x / y`, leaf by leaf.

    Args:
        tree_x: a tree.
        tree_y: a tree of the same structure.
    """
    return map_trees("div", operator.truediv, tree_x=tree_x, tree_y=tree_y)


def scale(scalar: Any, tree: PyTree) -> PyTree:
    """`scalar * x` for every leaf `x`.

    Args:
        scalar: a number, or an array that broadcasts with every leaf.
        tree: a tree.
    """
    return jax.tree.map(lambda x: scalar * x, tree)


def add_scale(tree_x: PyTree, scalar: Any, tree_y: PyTree) -> PyTree:
    """`x + scalar * y`, leaf by leaf; `None` where `x` is `None`.

    Args:
        tree_x: a tree.
        scalar: a number, or an array that broadcasts with every leaf.
        tree_y: a tree of the same structure.
    """
    factor = jnp.asarray(scalar)
    step = _unless_none(lambda x, y: x + factor * y)
    return map_trees("add_scale", step, none_is_leaf=True, tree_x=tree_x, tree_y=tree_y)


def where(condition: Any, tree_x: PyTree, tree_y: PyTree) -> PyTree:
    """`x` where the condition holds, else `y`.

    Args:
        condition: a boolean, or an array of them that broadcasts with every leaf.
        tree_x: a tree.
        tree_y: a tree of the same structure.
    """

    def choose(x: Any, y: Any) -> Any:
        return jnp.where(condition, x, y)

    return map_trees("where", choose, tree_x=tree_x, tree_y=tree_y)


def clip(tree: PyTree, min_value: Any = None, max_value: Any = None) -> PyTree:
    """Every entry moved into `[min_value, max_value]`.

    Args:
        tree: a tree of real numbers.
        min_value: the smallest value, or `None` for no bound.
        max_value: the largest value, or `None` for no bound.
    """
    return jax.tree.map(lambda x: jnp.clip(x, min_value, max_value), tree)


def conj(tree: PyTree) -> PyTree:
    """The complex conjugate of every entry.

    Args:
        tree: a tree.
    """
    return jax.tree.map(jnp.conj, tree)


def real(tree: PyTree) -> PyTree:
    """The real part of every entry.

    Args:
        tree: a tree.
    """
    return jax.tree.map(jnp.real, tree)


def _add_all(x: Any, y: Any, *others: Any) -> Any:
    return sum(others, x + y)


def _unless_none(f: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, *rest: None if x is None else f(x, *rest)
