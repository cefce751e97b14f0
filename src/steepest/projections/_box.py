"""The nearest point of a box: every number moved into its interval."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import PyTree

from .. import check
from ..numerics import promoted
from ..tree import first_difference, map_numbers
from ._precision import real_array


def projection_non_negative(tree: PyTree) -> PyTree:
    """The nearest tree without negative numbers: `max(x, 0)`.

    Args:
        tree: a tree of numbers.
    """
    above = lambda x: jax.nn.relu(real_array(x))
    return map_numbers("projection_non_negative", above, real=True, tree=tree)


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
    return _boxed("projection_box", tree, lower=lower, upper=upper)


def projection_hypercube(tree: PyTree, scale: PyTree = 1) -> PyTree:
    """The nearest tree of numbers in `[0, scale]`.

    Args:
        tree: a tree of real numbers.
        scale: the largest value: a number, an array that broadcasts with every leaf,
            or a tree as for `projection_box`.
    """
    _check_scale("projection_hypercube", scale)
    return _boxed("projection_hypercube", tree, lower=0, scale=scale)


def projection_linf_ball(tree: PyTree, scale: Any = 1) -> PyTree:
    """The nearest tree whose largest number is at most `scale` in size.

        y = min(max(x, -scale), scale)

    Args:
        tree: a tree of real numbers.
        scale: the radius: a number, or an array that broadcasts with every leaf.
    """
    name = "projection_linf_ball"
    _check_scale(name, scale)

    if not check.is_number(scale):
        raise check.WrongArgument(
            f"{name}: scale {check.said_of(scale)}, expected an array or a number."
        )
    bounds = -scale, scale

    def clip(x: Any) -> Any:
        # In the dtype of the leaf: integers stay integers, and below the radius.
        return _clip(x, *(jnp.asarray(b).astype(promoted(x)) for b in bounds))

    return map_numbers(name, clip, {"scale": scale}, real=True, tree=tree)


def _boxed(who: str, tree: PyTree, **bounds: PyTree) -> PyTree:
    """The tree between two bounds, which are given by name, the lower first."""
    spread = {name: _spread(who, x, tree, name) for name, x in bounds.items()}
    lows, highs = spread.values()
    for low, high in zip(lows, highs, strict=True):
        known = isinstance(low, int | float) and isinstance(high, int | float)
        if known and low > high:
            below, above = bounds
            raise ValueError(
                f"{who}: {below} is {low} and {above} is {high}, expected one that is "
                "not below it."
            )
    treedef = jax.tree.structure(tree)
    trees = {name: treedef.unflatten(row) for name, row in spread.items()}
    return map_numbers(who, _clip, real=True, optional=True, tree=tree, **trees)


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
    for x in bounds:
        if x is not None:
            check.unless_array(check.real, who, **{name: x})
    found: list[Any] = []
    for x, part in zip(bounds, parts, strict=True):
        found += [x] * len(jax.tree.leaves(part))
    return found


def _check_scale(name: str, scale: PyTree) -> None:
    """Below zero there is no such set. Arrays are not looked at: they may be traced."""
    for x in jax.tree.leaves(scale):
        check.unless_array(check.nonnegative.must, name, scale=x)
