"""Projections onto boxes: every number is clipped to its interval."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, PyTree

from .. import check
from ..core import Real
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
        lower: the smallest values: a tree like `tree`, or one value for a subtree or
            for the whole tree. `None` is no bound.
        upper: the largest values, likewise.

    >>> import jax.numpy as jnp
    >>> projection_box({"w": jnp.array([-3.0, 0.5])}, -1.0, 1.0)["w"].tolist()
    [-1.0, 0.5]
    """
    return _boxed("projection_box", tree, lower=lower, upper=upper)


def projection_hypercube(tree: PyTree, scale: PyTree = 1) -> PyTree:
    """The nearest tree of numbers in `[0, scale]`.

    Args:
        tree: a tree of real numbers.
        scale: the largest value: a number, an array that broadcasts with every leaf, or
            a tree like `tree`, in which one value may stand for a subtree.
    """
    _check_scale("projection_hypercube", scale)
    return _boxed("projection_hypercube", tree, lower=0, scale=scale)


def projection_linf_ball(tree: PyTree, scale: Real | np.ndarray = 1) -> PyTree:
    """The nearest tree whose entries are at most `scale` in absolute value.

        y = min(max(x, -scale), scale)

    Args:
        tree: a tree of real numbers.
        scale: the radius: a number, or an array that broadcasts with every leaf.
    """
    name = "projection_linf_ball"
    _check_scale(name, scale)

    if not check.is_number(scale):
        raise check.WrongArgument(
            f"{name}: scale {check.kind(scale)}, expected an array or a number."
        )
    bounds = -scale, scale

    def clip(x: ArrayLike) -> Array:
        # In the dtype of the leaf: integers stay integers within the radius.
        return _clip(x, *(jnp.asarray(b).astype(promoted(x)) for b in bounds))

    return map_numbers(name, clip, {"scale": scale}, real=True, tree=tree)


def _boxed(name: str, tree: PyTree, **bounds: PyTree) -> PyTree:
    """Clip the tree to two bounds, the lower one first."""
    spread = {key: _spread(name, x, tree, key) for key, x in bounds.items()}
    lows, highs = spread.values()
    for low, high in zip(lows, highs, strict=True):
        if not (isinstance(low, int | float) and isinstance(high, int | float)):
            continue  # no bound, or an array, which may be traced
        if low > high:
            below, above = bounds
            raise ValueError(
                f"{name}: {below} is {low} and {above} is {high}, expected {below} <= "
                f"{above}."
            )
    treedef = jax.tree.structure(tree)
    trees = {key: treedef.unflatten(row) for key, row in spread.items()}
    return map_numbers(name, _clip, real=True, optional=True, tree=tree, **trees)


def _clip(x: ArrayLike, low: ArrayLike | None, high: ArrayLike | None) -> Array:
    with jax.numpy_dtype_promotion("standard"):
        return jnp.clip(x, low, high)


def _spread(
    name: str, bound: PyTree, tree: PyTree, argument: str
) -> list[ArrayLike | None]:
    """The bound of every leaf; one bound may hold for a whole subtree."""
    bounds, treedef = jax.tree.flatten(bound, is_leaf=lambda x: x is None)
    try:
        parts = treedef.flatten_up_to(tree)
    except (KeyError, TypeError, ValueError):
        difference = first_difference(tree, bound, ("tree", argument))
        raise ValueError(
            f"{name}: {difference}. Give `{argument}` the structure of the tree, or "
            "one number for a whole subtree."
        ) from None
    for x in bounds:
        if x is not None:
            check.unless_array(check.real, name, **{argument: x})
    spread: list[ArrayLike | None] = []
    for x, part in zip(bounds, parts, strict=True):
        spread += [x] * len(jax.tree.leaves(part))
    return spread


def _check_scale(name: str, scale: PyTree) -> None:
    """Reject negative numbers. Arrays are not checked: they may be traced."""
    for x in jax.tree.leaves(scale):
        check.unless_array(check.nonnegative.must, name, scale=x)
