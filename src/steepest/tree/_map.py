"""A function of the leaves of several trees, with the leaf named where they differ."""

from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeAlias

import jax
import jax.numpy as jnp
from jaxtyping import PyTree

from .. import check
from ._paths import first_difference

Alike: TypeAlias = Literal["broadcast", "shape", "size"]


def map_trees(
    who: str,
    f: Callable[..., Any],
    *,
    none_is_leaf: bool = False,
    is_leaf: Callable[[Any], bool] | None = None,
    **trees: PyTree,
) -> PyTree:
    """`jax.tree.map(f, *trees)`, and an error that says where the structures part.

    Args:
        who: who speaks in the error.
        f: a function of one leaf of each tree, in their order.
        none_is_leaf: whether `f` sees `None` too.
        is_leaf: what else is a leaf, as for `jax.tree.map`.
        trees: the trees, by the names they have in the error. Where the first has a
            leaf, the others may have anything.
    """
    (name, first), *rest = trees.items()
    check.function(who, f=f)
    ends = is_leaf or _ends(none_is_leaf)
    leaves, treedef = jax.tree.flatten(first, is_leaf=ends)
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


def map_numbers(
    name: str,
    f: Callable[..., Any],
    numbers: Mapping[str, Any] | None = None,
    *,
    none_is_leaf: bool = False,
    alike: Alike = "broadcast",
    real: bool = False,
    optional: bool = False,
    **trees: PyTree,
) -> PyTree:
    """`map_trees` of a formula; where it fails, the leaf that does not fit is named.

    Nothing is looked at before it fails, so whatever a formula can take passes.

    Args:
        name: name used in error messages.
        f: a formula of one leaf of each tree, in their order.
        numbers: what else is in the formula, by name: arrays and numbers.
        none_is_leaf: whether `f` sees `None` too.
        alike: what the leaves should have in common: their "shape", their "size", or
            shapes that "broadcast".
        real: whether complex numbers are what may be wrong.
        optional: whether all trees but the first may have `None` for a number.
        trees: the trees, by the names they have in the error.
    """
    at = -1

    def step(*row: Any) -> Any:
        nonlocal at
        at += 1
        try:
            return f(*row)
        except (AttributeError, TypeError, ValueError) as error:
            if not str(error).startswith(f"{name}: "):
                first = next(iter(trees.values()))
                path = _path(first, at, none_is_leaf)
                leaves = dict(zip(trees, row, strict=True))
                if optional:
                    leaves = {k: x for k, x in leaves.items() if x is not None}
                wrong = _unfit(path, leaves, numbers or {}, alike, real)
                if wrong is not None:
                    raise check.WrongArgument(f"{name}: {wrong}") from None
            raise

    return map_trees(name, step, none_is_leaf=none_is_leaf, **trees)


def _unfit(
    path: str,
    leaves: dict[str, Any],
    numbers: Mapping[str, Any],
    alike: Alike,
    real: bool,
) -> str | None:
    """What is wrong with this row of leaves, in a sentence."""
    for name, x in leaves.items():
        if not check.is_number(x):
            return (
                f"leaf {path} of the {name} {check.said_of(x)}, expected an array or a "
                "number."
            )
    named = [f"{jnp.shape(x)} in the {name}" for name, x in leaves.items()]
    shapes = [jnp.shape(x) for x in (*leaves.values(), *numbers.values())]
    given = [f"{name} has shape {jnp.shape(x)}" for name, x in numbers.items()]
    found = f"leaf {path} has shape {' and '.join(named)}"
    if alike != "broadcast":
        measure = jnp.size if alike == "size" else jnp.shape
        if len({measure(x) for x in leaves.values()}) > 1:
            return f"{found}, expected leaves of one {alike}."
    try:
        jnp.broadcast_shapes(*shapes)
    except ValueError:
        return f"{' and '.join([found, *given])}, expected shapes that broadcast."
    for name, x in leaves.items():
        if real and jnp.iscomplexobj(x):
            dtype = jnp.result_type(x)
            return f"leaf {path} of the {name} is {dtype}, expected real numbers."
    return None


def _path(tree: PyTree, k: int, none_is_leaf: bool) -> str:
    rows, _ = jax.tree_util.tree_flatten_with_path(tree, is_leaf=_ends(none_is_leaf))
    return jax.tree_util.keystr(rows[k][0]) or "(the tree itself)"


def _ends(none_is_leaf: bool) -> Callable[[Any], bool] | None:
    return _is_none if none_is_leaf else None


def _is_none(x: object) -> bool:
    return x is None
