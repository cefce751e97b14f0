"""The nearest point of a box: every number moved into its interval."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from ..core import nonnegative
from ..numerics import promoted
from ..tree import first_difference


def projection_non_negative(tree: PyTree) -> PyTree:
    """The nearest tree without negative numbers: `max(x, 0)`.

    Args:
        tree: a tree of numbers.
    """
    return jax.tree.map(jax.nn.relu, tree)


def projection_box(tree: PyTree, lower: PyTree, upper: PyTree) -> PyTree:
    """The nearest tree between two others: `min(max(x, lower), upper)`.

    Args:
        tree: a tree of real numbers.
        lower: the smallest values: like the tree, or one for a whole subtree or for
            all of it. `None` is no bound.
        upper: the largest values, likewise.

    >>> projection_box({"w": jnp.array([-3.0, 0.5])}, -1.0, 1.0)["w"].tolist()
    [-1.0, 0.5]
    """
    lows = _spread("projection_box", lower, tree, "lower")
    highs = _spread("projection_box", upper, tree, "upper")
    leaves, treedef = jax.tree.flatten(tree)
    rows = zip(leaves, lows, highs, strict=True)
    return treedef.unflatten([_clip(*row) for row in rows])


def projection_hypercube(tree: PyTree, scale: PyTree = 1) -> PyTree:
    """The nearest tree of numbers in `[0, scale]`.

    Args:
        tree: a tree of real numbers.
        scale: the largest value: a number, an array that broadcasts with every leaf,
            or a tree as for `projection_box`.
    """
    _check_scale("projection_hypercube", scale)
    return projection_box(tree, 0, scale)


def projection_linf_ball(tree: PyTree, scale: Any = 1) -> PyTree:
    """The nearest tree whose largest number is at most `scale` in size.

        y = min(max(x, -scale), scale)

    Args:
        tree: a tree of real numbers.
        scale: the radius: a number, or an array that broadcasts with every leaf.
    """
    _check_scale("projection_linf_ball", scale)

    bounds = -scale, scale

    def clip(x: Any) -> Any:
        # In the dtype of the leaf: integers stay integers, and below the radius.
        return _clip(x, *(jnp.asarray(b).astype(promoted(x)) for b in bounds))

    return jax.tree.map(clip, tree)


def _clip(x: Any, low: Any, high: Any) -> Any:
    with jax.numpy_dtype_promotion("standard"):
        return jnp.clip(x, low, high)


def _spread(who: str, bound: PyTree, tree: PyTree, name: str) -> list[Any]:
    """The bound of every leaf, where one may stand for a whole subtree."""
    bounds, treedef = jax.tree.flatten(bound, is_leaf=lambda x: x is None)
    try:
        parts = treedef.flatten_up_to(tree)
    except (KeyError, TypeError, ValueError):
        difference = first_difference(tree, bound, ("tree", name))
        raise ValueError(
            f"{who}: {difference}. Give `{name}` the structure of the tree, or one "
            "number for a whole subtree."
        ) from None
    found: list[Any] = []
    for x, part in zip(bounds, parts, strict=True):
        found += [x] * len(jax.tree.leaves(part))
    return found


def _check_scale(who: str, scale: PyTree) -> None:
    """Below zero there is no such set. Arrays are not looked at: they may be traced."""
    for x in jax.tree.leaves(scale):
        if isinstance(x, int | float | np.number):
            nonnegative(who, scale=x)
