"""The `None` law and the structure law: how trees are taken apart and compared.

`None` is a leaf that nothing happens to: no memory, no update, no error. Trees that
belong together have the same structure, and where they do not, the leaf is named.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from ...core import like_optax, Params
from ...tree import first_difference, leaf_paths
from ._batches import alike, batches


@like_optax
class MaskedNode(NamedTuple):
    """What stands in a tree where a mask has taken something out: an empty node."""


class Leaves:
    """A tree taken apart, with the name it has in errors."""

    def __init__(self, tree: Params, name: str = "updates"):
        leaves, self.treedef = jax.tree.flatten(tree, is_leaf=_is_none)
        self.arrays = [_as_array(x) for x in leaves]
        self.tree = tree
        self.name = name

    def check(self, name: str) -> None:
        """That there are arrays in the tree, and nothing else.

        Args:
            name: name used in error messages.
        """
        for k, x in enumerate(self.arrays):
            if not _is_array_or_none(x):
                raise self.no_array(name, k, self.name, x)

    def no_array(self, who: str, k: int, name: str, found: Any) -> TypeError:
        """The error for something in the place of leaf `k` of the tree `name`."""
        return TypeError(
            f"{who}: leaf {self.path(k)} of the {name} is a {type(found).__name__}, "
            "expected an array. Put `None` where there is none."
        )

    def like(self, arrays: Iterable[Any]) -> Params:
        """These arrays, as a tree of this structure."""
        return self.treedef.unflatten(arrays)

    def path(self, k: int) -> str:
        """Where leaf `k` stands."""
        return leaf_paths(self.tree)[k]

    def match(
        self, who: str, other: Any, name: str, advice: str, *, deep: bool = False
    ) -> list[Any]:
        """The leaves of `other` in our order; an error if its structure is not ours.

        Where we have `None`, `other` may have anything.

        Args:
            who: who speaks in the error.
            other: the tree that should have our structure.
            name: what it is called in the error.
            advice: what to do about it.
            deep: whether there may be more than one array where we have one.
        """
        try:
            found = self.treedef.flatten_up_to(other)
        except (KeyError, TypeError, ValueError):
            found = None
        fits = found is not None and (
            deep or all(map(_may_stand_for, self.arrays, found))
        )
        if found is None or not fits:
            difference = first_difference(self.tree, other, (self.name, name))
            raise ValueError(f"{who}: {difference}. {advice}")
        return [_as_array(x) for x in found]


def map_leaves(name: str, f: Callable[..., Any], **trees: Params) -> Params:
    """`f` of the leaves of several trees; where one has `None`, the leaf of the last.

    Args:
        name: name used in error messages.
        f: a function of one leaf of each tree, in their order.
        trees: trees of one structure, by the names they have in an error.
    """
    first, rows = _rows(name, trees)
    return first.like([row[-1] if _has_none(row) else f(*row) for row in rows])


def same_shapes(who: str, **trees: Params) -> None:
    """An error unless the trees have one structure, and their arrays the same shapes.

    Args:
        who: who speaks in the error.
        trees: trees of arrays, by the names they have in the error.
    """
    for name, tree in trees.items():
        Leaves(tree, name).check(who)
    _rows(who, trees)


def map_wide(
    name: str, f: Callable[..., Any], numbers: Sequence[Any], **trees: Params
) -> Params:
    """`map_leaves` of a formula that `wide` has made, for leaves of any dtype.

    Args:
        name: name used in error messages.
        f: what `wide` has made of a formula.
        numbers: its first arguments, the same for all leaves.
        trees: trees of one structure, by the names they have in an error.
    """
    first, rows = _rows(name, trees)
    found = [row[-1] for row in rows]
    kinds = [None if _has_none(row) else alike(row[-1]) for row in rows]
    for batch in batches(kinds):
        for k, x in zip(batch, f(numbers, [rows[k] for k in batch]), strict=True):
            found[k] = x
    return first.like(found)


def _rows(who: str, trees: dict[str, Params]) -> tuple[Leaves, list[tuple[Any, ...]]]:
    """The first tree taken apart, and the leaves of all, side by side."""
    (name, tree), *rest = trees.items()
    first = Leaves(tree, name)
    advice = "Pass trees of one structure."
    columns = [first.match(who, other, name, advice) for name, other in rest]
    rows = list(zip(first.arrays, *columns, strict=True))
    for k, row in enumerate(rows):
        if _has_none(row):
            continue
        for x, name in zip(row, trees, strict=True):
            if not _is_array_or_none(x):
                raise first.no_array(who, k, name, x)
        shapes = [x.shape for x in row]
        if len(set(shapes)) > 1:
            named = zip(shapes, trees, strict=True)
            found = " and ".join(f"{shape} in the {name}" for shape, name in named)
            raise ValueError(f"{who}: leaf {first.path(k)} has shape {found}. {advice}")
    return first, rows


def _has_none(row: Sequence[Any]) -> bool:
    return any(x is None for x in row)


def _is_none(x: object) -> bool:
    return x is None


def _is_array_or_none(x: object) -> bool:
    return x is None or (hasattr(x, "shape") and hasattr(x, "dtype"))


def _as_array(x: Any) -> Any:
    numeric = isinstance(x, bool | int | float | complex)
    return jnp.asarray(x) if numeric else x


def _may_stand_for(mine: Any, other: Any) -> bool:
    alone = other is None or isinstance(other, MaskedNode)
    return mine is None or alone or jax.tree_util.all_leaves([other])
