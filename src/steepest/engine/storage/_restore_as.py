"""Continue a run with another storage of its memory."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import PyTree

from ...core import AnyTransformation, as_inner, OptState, Params
from ...numerics import encode, is_coded, is_inexact
from ...tree import first_difference, leaf_paths
from ..leaves import decoded, restore


def restore_as(state: OptState, tx: AnyTransformation, params: Params) -> OptState:
    """A state of the same optimizer, stored as `tx` stores it.

    Use it to change `memory_dtype` in the middle of a run, in either direction, or for
    a checkpoint of a run with another storage. Numbers that `tx` stores in few bits are
    rounded. What is already stored as `tx` stores it is unchanged, bit for bit.

    Args:
        state: a state of the same optimizer with any `memory_dtype`.
        tx: the optimizer that goes on from here.
        params: the params, or their shapes.

    >>> import jax.numpy as jnp, steepest
    >>> params = {"w": jnp.ones((64, 64))}
    >>> wide, narrow = steepest.adam(1e-3), steepest.adam(1e-3, memory_dtype="int8")
    >>> state = steepest.restore_as(wide.init(params), narrow, params)
    >>> state[0].mu["w"].codes.dtype
    dtype('int8')
    >>> steepest.restore_as(state, wide, params)[0].mu["w"].dtype
    dtype('float32')
    """
    tx = as_inner("restore_as", "tx", tx)
    like = jax.eval_shape(tx.init, params)
    wanted, treedef = jax.tree.flatten(like, is_leaf=is_coded)
    have, _ = jax.tree.flatten(state, is_leaf=is_coded)
    plain = treedef.unflatten([_shape(x) for x in wanted])
    if jax.tree.structure(decoded(state)) != jax.tree.structure(plain):
        names = "state", "state that `tx` makes"
        raise ValueError(
            f"restore_as: {first_difference(decoded(state), plain, names)}. Pass a "
            "state of the same optimizer; only its `memory_dtype` may differ."
        )
    paths = leaf_paths(plain)
    rows = zip(paths, have, wanted, strict=True)
    return treedef.unflatten([_converted(*row) for row in rows])


def _converted(path: str, x: Any, like: Any) -> PyTree:
    """One array of a state, stored like another."""
    if tuple(x.shape) != tuple(like.shape):
        raise ValueError(
            f"restore_as: {path} of the state has shape {tuple(x.shape)}, but `tx` "
            f"keeps shape {tuple(like.shape)}. Pass the params that the state is for."
        )
    if is_coded(x) and is_coded(like) and x.kind == like.kind:
        return x
    x = x.decode() if is_coded(x) else jnp.asarray(x)
    if is_coded(like):
        return encode(x.astype(like.dtype), like.kind)
    if x.dtype == like.dtype:
        return x
    if is_inexact(x) and is_inexact(like):
        return restore(x, like.dtype)
    raise TypeError(
        f"restore_as: {path} of the state is {x.dtype}, but `tx` keeps {like.dtype}. "
        "Pass a state of the same optimizer; only its `memory_dtype` may differ."
    )


def _shape(x: Any) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(x.shape, x.dtype)
