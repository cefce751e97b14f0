"""How trees are flattened and compared.

`None` is a leaf without memory and without an update; it is never an error. If two
trees must have the same structure and do not, the error names the leaf.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, TypeVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, PyTree

from ...core import like_optax, Params, Real, Updates
from ...numerics import is_coded
from ...tree import first_difference, leaf_paths
from ._batches import alike, batches

T = TypeVar("T")


@like_optax
class MaskedNode(NamedTuple):
    """An empty node, which replaces what a mask hides in a tree."""


class Leaves:
    """A flattened tree, and its name for error messages."""

    def __init__(self, tree: Params, name: str = "updates"):
        leaves, self.treedef = jax.tree.flatten(tree, is_leaf=_is_none)
        self.arrays = [_as_array(x) for x in leaves]
        self.tree = tree
        self.name = name

    def check(self, name: str) -> None:
        """Check that every leaf is an array or `None`.

        Args:
            name: name used in error messages.
        """
        for k, x in enumerate(self.arrays):
            if not _is_array_or_none(x):
                raise self.no_array(name, k, self.name, x)

    def no_array(self, name: str, k: int, tree_name: str, x: object) -> TypeError:
        """The error for an `x` that is leaf `k` of a tree, and not an array."""
        return TypeError(
            f"{name}: leaf {self.path(k)} of the {tree_name} is a {type(x).__name__}, "
            "expected an array. Use `None` for a leaf without an array."
        )

    def like(self, arrays: Iterable[object]) -> Params:
        """The arrays as a tree of the same structure."""
        return self.treedef.unflatten(arrays)

    def path(self, k: int) -> str:
        """The path of leaf `k`."""
        return leaf_paths(self.tree)[k]

    def match(
        self,
        name: str,
        other: PyTree,
        other_name: str,
        advice: str,
        *,
        deep: bool = False,
    ) -> list[PyTree]:
        """The leaves of `other`, in the same order; an error if its structure differs.

        Where this tree has `None`, `other` may have anything.

        Args:
            name: name used in error messages.
            other: a tree that must have the same structure.
            other_name: its name in the error.
            advice: the end of the error, which says what to do.
            deep: whether `other` may have a subtree where this tree has an array.
        """
        try:
            leaves = self.treedef.flatten_up_to(other)
        except (KeyError, TypeError, ValueError):
            leaves = None
        fits = leaves is not None and (
            deep or all(map(_may_stand_for, self.arrays, leaves))
        )
        if leaves is None or not fits:
            difference = first_difference(self.tree, other, (self.name, other_name))
            raise ValueError(f"{name}: {difference}. {advice}")
        return [_as_array(x) for x in leaves]


def map_leaves(name: str, f: Callable[..., object], **trees: Params) -> Params:
    """Apply `f` to the leaves of several trees.

    If one of the leaves is `None`, the result is the leaf of the last tree.

    Args:
        name: name used in error messages.
        f: a function of one leaf of each tree, in the same order.
        trees: trees of the same structure, by their names in error messages.
    """
    first, rows = _rows(name, trees)
    return first.like([row[-1] if _has_none(row) else f(*row) for row in rows])


def same_shapes(name: str, **trees: Params) -> None:
    """Check that trees have the same structure, and their arrays the same shapes.

    Args:
        name: name used in error messages.
        trees: trees of arrays, by their names in error messages.
    """
    for tree_name, tree in trees.items():
        Leaves(tree, tree_name).check(name)
    _rows(name, trees)


def zeros_for_none(updates: Updates, params: Params) -> Updates:
    """The updates, with zeros like the params in place of `None`.

    Args:
        updates: a tree like the params.
        params: the params. Where they are `None`, the updates are unchanged.
    """
    if not any(x is None for x in jax.tree.leaves(updates, is_leaf=_is_none)):
        return updates
    fill = lambda u, p: jax.tree.map(jnp.zeros_like, p) if u is None else u
    return jax.tree.map(fill, updates, params, is_leaf=_is_none)


def map_wide(
    name: str,
    f: Callable[..., list[Array]],
    numbers: Sequence[Real],
    **trees: Params,
) -> Params:
    """`map_leaves` for a function made by `wide`, with leaves of any dtype.

    Args:
        name: name used in error messages.
        f: the result of `wide`.
        numbers: its first arguments, the same for all leaves.
        trees: trees of the same structure, by their names in error messages.
    """
    first, rows = _rows(name, trees)
    result = [row[-1] for row in rows]
    kinds = [None if _has_none(row) else alike(row[-1]) for row in rows]
    for batch in batches(kinds):
        for k, x in zip(batch, f(numbers, [rows[k] for k in batch]), strict=True):
            result[k] = x
    return first.like(result)


def _rows(
    name: str, trees: dict[str, Params]
) -> tuple[Leaves, list[tuple[PyTree, ...]]]:
    """The flattened first tree, and for each of its leaves the leaves of all trees."""
    (first_name, tree), *rest = trees.items()
    first = Leaves(tree, first_name)
    advice = "Pass trees of one structure."
    columns = [first.match(name, other, k, advice) for k, other in rest]
    rows = list(zip(first.arrays, *columns, strict=True))
    for k, row in enumerate(rows):
        if _has_none(row):
            continue
        for x, tree_name in zip(row, trees, strict=True):
            if not _is_array_or_none(x):
                raise first.no_array(name, k, tree_name, x)
        shapes = [x.shape for x in row]
        if len(set(shapes)) > 1:
            pairs = zip(shapes, trees, strict=True)
            text = " and ".join(f"{shape} in the {title}" for shape, title in pairs)
            raise ValueError(f"{name}: leaf {first.path(k)} has shape {text}. {advice}")
    return first, rows


def _has_none(row: Sequence[object]) -> bool:
    return any(x is None for x in row)


def _is_none(x: object) -> bool:
    return x is None


def _is_array_or_none(x: object) -> bool:
    return x is None or (hasattr(x, "shape") and hasattr(x, "dtype"))


def _as_array(x: T) -> T | Array:
    numeric = isinstance(x, bool | int | float | complex)
    return jnp.asarray(x) if numeric else x


def _may_stand_for(mine: object, other: object) -> bool:
    alone = other is None or isinstance(other, MaskedNode)
    is_leaf = is_coded(other) or jax.tree_util.all_leaves([other])
    return mine is None or alone or is_leaf
