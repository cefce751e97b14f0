"""A function of the leaves of several trees, with the leaf named where they differ."""

from collections.abc import Callable
from typing import Any

import jax
from jaxtyping import PyTree

from ._paths import first_difference


def map_trees(
    who: str, f: Callable[..., Any], *, none_is_leaf: bool = False, **trees: PyTree
) -> PyTree:
    """`jax.tree.map(f, *trees)`, and an error that says where the structures part.

    Args:
        who: who speaks in the error.
        f: a function of one leaf of each tree, in their order.
        none_is_leaf: whether `f` sees `None` too.
        trees: the trees, by the names they have in the error. Where the first has a
            leaf, the others may have anything.
    """
    (name, first), *rest = trees.items()
    leaves, treedef = jax.tree.flatten(
        first, is_leaf=_is_none if none_is_leaf else None
    )
    columns = [leaves]
    for other_name, other in rest:
        try:
            columns.append(treedef.flatten_up_to(other))
        except (KeyError, TypeError, ValueError):
            difference = first_difference(first, other, (name, other_name))
            raise ValueError(
                f"{who}: {difference}. Pass trees of one structure."
            ) from None
    return treedef.unflatten([f(*row) for row in zip(*columns, strict=True)])


def _is_none(x: object) -> bool:
    return x is None
