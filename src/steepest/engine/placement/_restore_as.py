"""Continue a run with another storage of its memory, or on other devices."""

from collections.abc import Collection, Hashable
from typing import Any

import jax
import jax.numpy as jnp
from jax.core import Tracer
from jaxtyping import PyTree

from ...core import AnyTransformation, as_inner, OptState, Params
from ...numerics import encode, is_coded, is_inexact
from ...tree import first_difference
from ..leaves import restore
from ..storage import is_joined, layouts_in, repack, unpack_but
from ._init import place
from ._shardings import shardings
from ._zero import ZeroState

_ADVICE = "Pass a state of the same optimizer; only storage and devices may differ."


def restore_as(state: OptState, tx: AnyTransformation, params: Params) -> OptState:
    """A state of the same optimizer, stored as `tx` stores it, where the params are.

    Use it to go on with a checkpoint of another run, or in the middle of a run. Each of
    these may differ, in either direction:

    - `memory_dtype`. Numbers that `tx` stores in few bits are rounded.
    - `reshard`, and the number of devices that share the matrices; `keep_stacks`.
    - `zero`, `packed` and `offload`, around the same optimizer.
    - the mesh, the shardings, and the number of devices and processes.

    What is already stored as `tx` stores it is unchanged, bit for bit. Where matrices
    take turns (`rolled`), the steps of their turns may be others on another mesh.

    Args:
        state: a state of the same optimizer. With several processes, arrays that are
            not on a mesh are the same in each of them.
        tx: the optimizer that goes on from here.
        params: the params, or their shapes. If their sharding is not known, the state
            stays on its devices.

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
    state, bare = _without_zero(state), _without_zero(like)
    same = layouts_in(state) & layouts_in(bare)
    have, its = jax.tree.flatten(_plain(state, same), is_leaf=is_coded)
    wanted, treedef = jax.tree.flatten(unpack_but(same, bare), is_leaf=is_coded)
    before = its.unflatten([_shape(x) for x in have])
    after = treedef.unflatten([_shape(x) for x in wanted])
    if jax.tree.structure(before) != jax.tree.structure(after):
        names = "state", "state that `tx` makes"
        difference = first_difference(before, after, names)
        raise ValueError(f"restore_as: {difference}. {_ADVICE}")
    paths = jax.tree_util.tree_leaves_with_path(after)  # without `None`
    names = (jax.tree_util.keystr(path) or "(the tree itself)" for path, _ in paths)
    rows = zip(names, have, wanted, strict=True)
    plain = treedef.unflatten([_converted(*row) for row in rows])
    state = _with_zero(like, repack(bare, plain))
    return place(state, shardings(tx, params)) if _is_placed(state, params) else state


def _plain(state: OptState, kept: Collection[Hashable]) -> OptState:
    """A state without `packed` and stacks, except in some layouts.

    Memory in few bits stays so.
    """
    moves = lambda x: is_joined(x) and x.layout not in kept
    ready = lambda x: _on_device(x) if moves(x) else x
    return unpack_but(kept, jax.tree.map(ready, state, is_leaf=is_joined))


def _on_device(tree: PyTree) -> PyTree:
    """A tree without arrays in the memory of the host, where nothing is computed."""
    kind = lambda x: getattr(getattr(x, "sharding", None), "memory_kind", None)
    space = jax.memory.Space.Device
    move = lambda x: x if kind(x) in (None, "device") else jax.device_put(x, space)
    return jax.tree.map(move, tree)


def _is_zero(x: object) -> bool:
    return isinstance(x, ZeroState)


def _without_zero(state: PyTree) -> PyTree:
    """A state with the states inside of `zero` in the place of those of `zero`."""
    inner = lambda x: _without_zero(x.inner_state) if _is_zero(x) else x
    return jax.tree.map(inner, state, is_leaf=_is_zero)


def _with_zero(like: PyTree, state: PyTree) -> PyTree:
    """Undo `_without_zero`, where `like` has states of `zero`."""
    flat, treedef = jax.tree.flatten(like, is_leaf=_is_zero)

    def outer(x: Any, part: PyTree) -> PyTree:
        if not _is_zero(x):
            return part
        return x._replace(inner_state=_with_zero(x.inner_state, part))

    rows = zip(flat, treedef.flatten_up_to(state), strict=True)
    return treedef.unflatten([outer(*row) for row in rows])


def _is_placed(state: OptState, params: Params) -> bool:
    """Whether it is known where the params are, and the state can be moved there."""
    arrays = jax.tree.leaves((state, params))
    if any(isinstance(x, Tracer) for x in arrays):
        return False
    known = (getattr(x, "sharding", None) for x in jax.tree.leaves(params))
    return any(x is not None for x in known)


def _converted(path: str, x: Any, like: Any) -> PyTree:
    """One array of a state, stored like another."""
    if tuple(x.shape) != tuple(like.shape):
        raise ValueError(
            f"restore_as: {path} of the state has shape {tuple(x.shape)}, but `tx` "
            f"keeps shape {tuple(like.shape)}. Pass the params that the state is for."
        )
    if is_coded(x) and is_coded(like) and x.kind == like.kind:
        return x
    if not is_coded(x) and not is_coded(like) and x.dtype == like.dtype:
        return x if isinstance(x, jax.Array) else jnp.asarray(x)
    x = _on_device(x)
    x = x.decode() if is_coded(x) else jnp.asarray(x)
    if is_coded(like):
        return encode(x.astype(like.dtype), like.kind)
    if x.dtype == like.dtype:
        return x
    if is_inexact(x) and is_inexact(like):
        return restore(x, like.dtype)
    raise TypeError(
        f"restore_as: {path} of the state is {x.dtype}, but `tx` keeps {like.dtype}. "
        f"{_ADVICE}"
    )


def _shape(x: Any) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(x.shape, x.dtype)
