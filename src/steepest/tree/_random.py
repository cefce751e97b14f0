"""Random trees, and one key for each leaf."""

import inspect
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike, DTypeLike
from jaxtyping import Array, PyTree

from .. import check
from ._map import map_numbers


def split_key_like(rng_key: Array, target_tree: PyTree) -> PyTree:
    """Split a key into one for each leaf of a tree.

    Args:
        rng_key: a `jax.random` key, typed or legacy.
        target_tree: the tree.
    """
    check.key("split_key_like", rng_key=rng_key)
    treedef = jax.tree.structure(target_tree)
    return treedef.unflatten(jax.random.split(rng_key, treedef.num_leaves))


def random_like(
    rng_key: Array,
    target_tree: PyTree,
    sampler: Callable[..., Array] = jax.random.normal,
    dtype: DTypeLike | None = None,
) -> PyTree:
    """Random numbers with the shapes of a tree.

    Args:
        rng_key: a `jax.random` key.
        target_tree: a tree of arrays, numbers or `ShapeDtypeStruct`s.
        sampler: a function of a key, a shape and a dtype. If it has an argument
            `out_sharding`, it is called with that of the leaf.
        dtype: the dtype of all leaves; by default each leaf keeps its own.

    >>> import jax, jax.numpy as jnp
    >>> tree = {"w": jnp.zeros((2, 3))}
    >>> random_like(jax.random.key(0), tree, jax.random.uniform)["w"].shape
    (2, 3)
    """
    name = "random_like"
    check.key(name, rng_key=rng_key)
    check.function(name, sampler=sampler)
    check.any_dtype(name, dtype=dtype)
    keys = split_key_like(rng_key, target_tree)
    paths = iter(jax.tree_util.tree_leaves_with_path(target_tree))
    sharded = _takes(sampler, "out_sharding")

    def draw(x: Any, key: Array) -> Array:
        path = jax.tree_util.keystr(next(paths)[0]) or "(the tree itself)"
        own = x.dtype if hasattr(x, "dtype") else jnp.result_type(x)
        options = {"out_sharding": _sharding(x)} if sharded else {}
        kind = jax.dtypes.canonicalize_dtype(own if dtype is None else dtype)
        try:
            return sampler(key, jnp.shape(x), kind, **options)
        except (TypeError, ValueError) as error:
            raise check.WrongArgument(
                f"{name}: the sampler failed for leaf {path}, {kind} of shape "
                f"{jnp.shape(x)}: {str(error).rstrip('.')}. Pass another `dtype` or "
                "`sampler`."
            ) from error

    return map_numbers(name, draw, target_tree=target_tree, keys=keys)


def unwrap_random_key_data(input_tree: PyTree) -> PyTree:
    """Turn typed random keys into arrays of integers.

    States with keys in them can then be saved and compared.

    Args:
        input_tree: any tree.
    """

    def unwrap(x: PyTree) -> PyTree:
        kind = getattr(x, "dtype", None)
        is_key = kind is not None and jnp.issubdtype(kind, jax.dtypes.prng_key)
        return jax.random.key_data(x) if is_key else x

    return jax.tree.map(unwrap, input_tree)


def _takes(f: Callable[..., object], argument: str) -> bool:
    try:
        return argument in inspect.signature(f).parameters
    except (TypeError, ValueError):  # some C functions have no signature
        return False


def _sharding(x: ArrayLike | jax.ShapeDtypeStruct) -> object:
    """The sharding of a leaf, as far as its type says."""
    if isinstance(x, jax.ShapeDtypeStruct):
        return x.sharding
    return jax.typeof(x).sharding
