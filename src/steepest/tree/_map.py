"""Map over the leaves of several trees, with errors that name the leaf."""

from collections.abc import Callable, Mapping
from typing import Literal, TypeAlias

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import PyTree

from .. import check
from ._paths import first_difference

Alike: TypeAlias = Literal["broadcast", "shape", "size"]


def map_trees(
    name: str,
    f: Callable[..., object],
    *,
    none_is_leaf: bool = False,
    is_leaf: Callable[[object], bool] | None = None,
    **trees: PyTree,
) -> PyTree:
    """`jax.tree.map(f, *trees)`, with an error that says where the structures differ.

    Args:
        name: name used in error messages.
        f: a function of one leaf of each tree, in their order.
        none_is_leaf: whether `f` is called with `None` too.
        is_leaf: what else is a leaf, as for `jax.tree.map`.
        trees: the trees, by the names used for them in error messages. Where the first
            has a leaf, the others may have any subtree.
    """
    (label, first), *rest = trees.items()
    check.function(name, f=f)
    ends = is_leaf or _ends(none_is_leaf)
    leaves, treedef = jax.tree.flatten(first, is_leaf=ends)
    columns = [leaves]
    for other_label, other in rest:
        try:
            columns.append(treedef.flatten_up_to(other))
        except (KeyError, TypeError, ValueError):
            difference = first_difference(first, other, (label, other_label))
            raise ValueError(
                f"{name}: {difference}. Pass trees of the same structure."
            ) from None
    return treedef.unflatten([f(*row) for row in zip(*columns, strict=True)])


def map_numbers(
    name: str,
    f: Callable[..., object],
    numbers: Mapping[str, ArrayLike] | None = None,
    *,
    none_is_leaf: bool = False,
    alike: Alike = "broadcast",
    real: bool = False,
    optional: bool = False,
    **trees: PyTree,
) -> PyTree:
    """`map_trees` of a formula; if it fails, the error names the leaf that is wrong.

    Nothing is checked before the formula fails, so everything it accepts is allowed.

    Args:
        name: name used in error messages.
        f: a formula of one leaf of each tree, in their order.
        numbers: other arrays and numbers in the formula, by name.
        none_is_leaf: whether `f` is called with `None` too.
        alike: what the leaves should have in common: the same "shape", the same "size",
            or shapes that "broadcast".
        real: whether the formula needs real numbers.
        optional: whether all trees but the first may have `None` instead of a number.
        trees: the trees, by the names used for them in error messages.
    """
    index = -1

    def step(*row: PyTree) -> object:
        nonlocal index
        index += 1
        try:
            return f(*row)
        except (AttributeError, TypeError, ValueError) as error:
            if not str(error).startswith(f"{name}: "):
                first = next(iter(trees.values()))
                path = _path(first, index, none_is_leaf)
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
    leaves: dict[str, PyTree],
    numbers: Mapping[str, ArrayLike],
    alike: Alike,
    real: bool,
) -> str | None:
    """A sentence that says what is wrong with this row of leaves, or `None`."""
    for name, x in leaves.items():
        if not check.is_number(x):
            return (
                f"leaf {path} of the {name} {check.kind(x)}, expected an array or a "
                "number."
            )
    named = [f"{jnp.shape(x)} in the {name}" for name, x in leaves.items()]
    shapes = [jnp.shape(x) for x in (*leaves.values(), *numbers.values())]
    others = [f"{name} has shape {jnp.shape(x)}" for name, x in numbers.items()]
    row = f"leaf {path} has shape {' and '.join(named)}"
    if alike != "broadcast":
        measure = jnp.size if alike == "size" else jnp.shape
        if len({measure(x) for x in leaves.values()}) > 1:
            return f"{row}, expected leaves of the same {alike}."
    try:
        jnp.broadcast_shapes(*shapes)
    except ValueError:
        return f"{' and '.join([row, *others])}, expected shapes that broadcast."
    for name, x in leaves.items():
        if real and jnp.iscomplexobj(x):
            dtype = jnp.result_type(x)
            return f"leaf {path} of the {name} is {dtype}, expected real numbers."
    return None


def _path(tree: PyTree, k: int, none_is_leaf: bool) -> str:
    rows, _ = jax.tree_util.tree_flatten_with_path(tree, is_leaf=_ends(none_is_leaf))
    return jax.tree_util.keystr(rows[k][0]) or "(the tree itself)"


def _ends(none_is_leaf: bool) -> Callable[[object], bool] | None:
    return _is_none if none_is_leaf else None


def _is_none(x: object) -> bool:
    return x is None
