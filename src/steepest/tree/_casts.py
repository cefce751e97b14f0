"""Trees like other trees: in other dtypes, filled, or with more axes."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import PyTree

from .. import check
from ..numerics import promoted
from ._map import map_numbers


def cast(tree: PyTree, dtype: Any) -> PyTree:
    """Every leaf in `dtype`.

    Args:
        tree: a tree of arrays or numbers.
        dtype: the dtype; with `None` the tree comes back as it is.
    """
    if dtype is None:
        return tree
    check.any_dtype("cast", dtype=dtype)
    return map_numbers("cast", lambda x: _array(x).astype(dtype), tree=tree)


def cast_like(tree: PyTree, other_tree: PyTree) -> PyTree:
    """Every leaf in the dtype of the leaf that stands there in another tree.

    Python numbers, here or there, change nothing.

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
        tree: a tree of arrays, numbers, or shapes with dtypes.
        mixed_dtype_handler: what to do where leaves differ. `None`: an error.
            "promote": the dtype in which all can be held. "highest": that of the leaf
            in which all others can be held. "lowest": that of the leaf which all
            others can hold. The last two are errors where no leaf has such a dtype.
    """
    if mixed_dtype_handler not in (None, "promote", "highest", "lowest"):
        raise ValueError(
            f"dtype: mixed_dtype_handler is {mixed_dtype_handler!r}, expected None, "
            '"promote", "highest" or "lowest".'
        )
    found: list[Any] = []
    map_numbers("dtype", lambda x: found.append(_dtype_of(x)), tree=tree)
    if not found:
        return promoted(1.0)
    chosen = found[0]
    for k, other in enumerate(found):
        if other == chosen:
            continue
        if mixed_dtype_handler is None:
            path = _path(tree, k)
            raise ValueError(
                f"dtype: leaf {path} has dtype {other}, and the leaves before it have "
                f"{chosen}. Give all one dtype, or a `mixed_dtype_handler`."
            )
        both = promoted(chosen, other)
        if mixed_dtype_handler == "promote":
            chosen = both
            continue
        if both not in (chosen, other):
            raise ValueError(
                f"dtype: leaf {_path(tree, k)} has dtype {other}, and another leaf has "
                f"{chosen}: neither can hold the other. Use "
                'mixed_dtype_handler="promote".'
            )
        keep_other = (both == other) == (mixed_dtype_handler == "highest")
        chosen = other if keep_other else chosen
    return chosen


def zeros_like(tree: PyTree, dtype: Any = None) -> PyTree:
    """Zeros in the shapes of a tree.

    Args:
        tree: a tree of arrays, numbers, or shapes with dtypes.
        dtype: the dtype of all leaves; by default each has its own.
    """
    return _filled("zeros_like", jnp.zeros_like, tree, dtype)


def ones_like(tree: PyTree, dtype: Any = None) -> PyTree:
    """Ones in the shapes of a tree.

    Args:
        tree: a tree of arrays, numbers, or shapes with dtypes.
        dtype: the dtype of all leaves; by default each has its own.
    """
    return _filled("ones_like", jnp.ones_like, tree, dtype)


def full_like(tree: PyTree, fill_value: Any, dtype: Any = None) -> PyTree:
    """One value in the shapes of a tree.

    Args:
        tree: a tree of arrays, numbers, or shapes with dtypes.
        fill_value: a number, or an array that broadcasts to every leaf.
        dtype: the dtype of all leaves; by default each has its own.
    """
    (value,) = check.array("full_like", fill_value=fill_value)
    full = lambda x, dtype: jnp.full_like(x, fill_value, dtype=dtype)
    return _filled("full_like", full, tree, dtype, fill_value=value)


def batch_shape(tree: PyTree, shape: Sequence[int] = ()) -> PyTree:
    """Every leaf repeated along new leading axes.

    Args:
        tree: a tree of arrays or numbers.
        shape: the sizes of the new axes.

    >>> batch_shape({"w": jnp.ones(2)}, (3,))["w"].shape
    (3, 2)
    """
    (new,) = check.sizes("batch_shape", shape=shape)
    repeated = lambda x: jnp.broadcast_to(x, (*new, *jnp.shape(x)))
    return map_numbers("batch_shape", repeated, tree=tree)


def _filled(
    name: str, fill: Callable[..., Any], tree: PyTree, dtype: Any, **numbers: Any
) -> PyTree:
    check.any_dtype(name, dtype=dtype)
    return map_numbers(name, lambda x: fill(x, dtype=dtype), numbers, tree=tree)


def _array(x: Any) -> Any:
    return x if hasattr(x, "astype") else jnp.asarray(x)


def _dtype_of(x: Any) -> Any:
    found = getattr(x, "dtype", None)
    if found is None and not check.is_number(x):  # a string would be taken for a dtype
        raise TypeError(f"a {type(x).__name__} has no dtype")
    if found is None or not jnp.issubdtype(found, jax.dtypes.extended):
        # The dtype that JAX would compute in: without x64 it has no float64.
        found = promoted(x) if found is None else jax.dtypes.canonicalize_dtype(found)
    return found


def _path(tree: PyTree, k: int) -> str:
    rows = jax.tree_util.tree_leaves_with_path(tree)
    return jax.tree_util.keystr(rows[k][0]) or "(the tree itself)"
