"""Trees like other trees: cast, filled, or with new leading axes."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike, DTypeLike
from jaxtyping import Array, PyTree

from .. import check
from ..numerics import promoted
from ._map import map_numbers


def cast(tree: PyTree, dtype: DTypeLike | None) -> PyTree:
    """Cast every leaf to `dtype`.

    Args:
        tree: a tree of arrays or numbers.
        dtype: the dtype; `None` returns the tree unchanged.
    """
    if dtype is None:
        return tree
    check.any_dtype("cast", dtype=dtype)
    return map_numbers("cast", lambda x: _array(x).astype(dtype), tree=tree)


def cast_like(tree: PyTree, other_tree: PyTree) -> PyTree:
    """Cast every leaf to the dtype of the matching leaf of another tree.

    Leaves that are Python numbers, in either tree, cast nothing.

    Args:
        tree: a tree of arrays.
        other_tree: a tree of the same structure; shapes may differ.
    """

    def like(x: Any, other: Any) -> Any:
        if hasattr(x, "dtype") and hasattr(other, "dtype"):
            return x.astype(other.dtype)
        return x if check.is_number(x) else _array(x)

    return map_numbers("cast_like", like, tree=tree, other_tree=other_tree)


def dtype(tree: PyTree, mixed_dtype_handler: str | None = None) -> Any:
    """The dtype of a tree; that of `jnp.asarray(1.0)` for a tree without leaves.

    Args:
        tree: a tree of arrays, numbers or `ShapeDtypeStruct`s.
        mixed_dtype_handler: what to return if the dtypes of leaves differ. `None`:
            raise an error. "promote": their common dtype. "highest": the dtype of the
            leaf that can hold all others. "lowest": the dtype of the leaf that all
            others can hold. The last two raise an error if no leaf has such a dtype.
    """
    if mixed_dtype_handler not in (None, "promote", "highest", "lowest"):
        raise ValueError(
            f"dtype: mixed_dtype_handler is {mixed_dtype_handler!r}, expected None, "
            '"promote", "highest" or "lowest".'
        )
    dtypes: list[Any] = []
    map_numbers("dtype", lambda x: dtypes.append(_dtype_of(x)), tree=tree)
    if not dtypes:
        return promoted(1.0)
    chosen = dtypes[0]
    for k, other in enumerate(dtypes):
        if other == chosen:
            continue
        if mixed_dtype_handler is None:
            path = _path(tree, k)
            raise ValueError(
                f"dtype: leaf {path} has dtype {other}, but the leaves before it have "
                f"{chosen}. Cast them to one dtype, or pass a `mixed_dtype_handler`."
            )
        both = promoted(chosen, other)
        if mixed_dtype_handler == "promote":
            chosen = both
            continue
        if both not in (chosen, other):
            raise ValueError(
                f"dtype: leaf {_path(tree, k)} has dtype {other}, but another leaf has "
                f"{chosen}: neither dtype can hold the other. Use "
                'mixed_dtype_handler="promote".'
            )
        keep_other = (both == other) == (mixed_dtype_handler == "highest")
        chosen = other if keep_other else chosen
    return chosen


def zeros_like(tree: PyTree, dtype: DTypeLike | None = None) -> PyTree:
    """Zeros with the shapes of a tree.

    Args:
        tree: a tree of arrays, numbers or `ShapeDtypeStruct`s.
        dtype: the dtype of all leaves; by default each leaf keeps its own.
    """
    return _filled("zeros_like", jnp.zeros_like, tree, dtype)


def ones_like(tree: PyTree, dtype: DTypeLike | None = None) -> PyTree:
    """Ones with the shapes of a tree.

    Args:
        tree: a tree of arrays, numbers or `ShapeDtypeStruct`s.
        dtype: the dtype of all leaves; by default each leaf keeps its own.
    """
    return _filled("ones_like", jnp.ones_like, tree, dtype)


def full_like(
    tree: PyTree, fill_value: ArrayLike, dtype: DTypeLike | None = None
) -> PyTree:
    """One value with the shapes of a tree.

    Args:
        tree: a tree of arrays, numbers or `ShapeDtypeStruct`s.
        fill_value: a number, or an array that broadcasts to every leaf.
        dtype: the dtype of all leaves; by default each leaf keeps its own.
    """
    (value,) = check.array("full_like", fill_value=fill_value)
    full = lambda x, dtype: jnp.full_like(x, fill_value, dtype=dtype)
    return _filled("full_like", full, tree, dtype, fill_value=value)


def batch_shape(tree: PyTree, shape: Sequence[int] = ()) -> PyTree:
    """Repeat every leaf along new leading axes.

    Args:
        tree: a tree of arrays or numbers.
        shape: the sizes of the new axes.

    >>> import jax.numpy as jnp
    >>> batch_shape({"w": jnp.ones(2)}, (3,))["w"].shape
    (3, 2)
    """
    (new,) = check.sizes("batch_shape", shape=shape)
    repeated = lambda x: jnp.broadcast_to(x, (*new, *jnp.shape(x)))
    return map_numbers("batch_shape", repeated, tree=tree)


def _filled(
    name: str,
    fill: Callable[..., Array],
    tree: PyTree,
    dtype: DTypeLike | None,
    **numbers: ArrayLike,
) -> PyTree:
    check.any_dtype(name, dtype=dtype)
    return map_numbers(name, lambda x: fill(x, dtype=dtype), numbers, tree=tree)


def _array(x: Any) -> Any:
    return x if hasattr(x, "astype") else jnp.asarray(x)


def _dtype_of(x: Any) -> Any:
    dtype = getattr(x, "dtype", None)
    if dtype is None and not check.is_number(x):  # a string would be read as a dtype
        raise TypeError(f"a {type(x).__name__} has no dtype")
    if dtype is None or not jnp.issubdtype(dtype, jax.dtypes.extended):
        # The dtype that JAX would compute in: there is no float64 without x64.
        dtype = promoted(x) if dtype is None else jax.dtypes.canonicalize_dtype(dtype)
    return dtype


def _path(tree: PyTree, k: int) -> str:
    rows = jax.tree_util.tree_leaves_with_path(tree)
    return jax.tree_util.keystr(rows[k][0]) or "(the tree itself)"
