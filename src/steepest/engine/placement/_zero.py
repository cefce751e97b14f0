"""State and update sharded over one more mesh axis: ZeRO, stages 1 and 2.

Rajbhandari, Rasley, Ruwase and He, ZeRO: memory optimizations toward training trillion
parameter models, 2020, arXiv:1910.02054
Xu et al., Automatic cross-replica sharding of weight update in data-parallel training,
2020, arXiv:2004.13336
"""

from collections.abc import Iterator
from dataclasses import replace
from math import prod
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.core import Tracer
from jax.sharding import AxisType, NamedSharding, PartitionSpec, reshard
from jaxtyping import PyTree

from ... import check
from ...core import (
    AnyTransformation,
    as_inner,
    GradientTransformationExtraArgs,
    OptState,
    Params,
    transformation,
    Updates,
)
from ..step import Placed, WrapperInfo, wrapping
from ._shardings import AnyMesh, mesh_of, typed_init

_NAME = "zero"
_ADVICE = "Pass trees like the params that the state was made for."


class ZeroState(NamedTuple):
    """The state of `zero`."""

    inner_state: OptState  # of the wrapped transformation, sharded over one more axis
    placed: Placed  # the shardings of the params; no arrays


@transformation
def zero(tx: AnyTransformation, axis: str = "data") -> GradientTransformationExtraArgs:
    """Shard the state and the work of `tx` over one more mesh axis (ZeRO-1 and 2).

    In data-parallel training, every device has the same params, and would keep the same
    state and compute the same update. With `zero`, each keeps and computes a part:

        g, p <- g, p sharded over `axis`
        u    <- update of tx, sharded
        u    <- u sharded like p was: one all-gather for each leaf

    The results are those of `tx`, and the params stay as they were. The axis is added
    to the sharding of a param, at the first dimension that it divides. A leaf without
    such a dimension stays as it is; `describe` shows which. If the gradients are
    computed in the same `jit`, the compiler can sum them straight into their parts.

    Memory that is not like a param, such as the factors of SOAP, is sharded in the same
    way between steps. A step gathers what it needs of it.

    Make the state with `steepest.init`, outside of `jit`: there the shardings of the
    params are known. A state from `jit` is not sharded over `axis`, unless the axes of
    the mesh are explicit, and `make_step` refuses it. On one device this is `tx`.

    Args:
        tx: any transformation. Elementwise ones, such as AdamW, need no other
            communication; those with norms or matrices gather what they need.
        axis: the name of a mesh axis over which the params are not sharded.

    >>> import jax, jax.numpy as jnp, steepest
    >>> from jax.sharding import NamedSharding, PartitionSpec
    >>> mesh = jax.make_mesh((1,), ("data",))
    >>> params = jax.device_put(jnp.ones((8, 4)), NamedSharding(mesh, PartitionSpec()))
    >>> tx = steepest.zero(steepest.adamw(1e-3))
    >>> state = steepest.init(tx, params)
    >>> updates, state = jax.jit(tx.update)(params, state, params)
    >>> state.inner_state[0].mu.sharding.spec, updates.sharding.is_fully_replicated
    (P('data', None), True)
    """
    tx = as_inner(_NAME, "tx", tx)
    if not isinstance(axis, str):
        raise TypeError(
            f"{_NAME}: axis is a {type(axis).__name__}, expected the name of a mesh "
            'axis, such as "data".'
        )

    def init(params: Params) -> ZeroState:
        placed = _placed(params, axis)
        inner = tx.init(_put(params, placed, placed.after))
        placed = _with_memory(placed, tx, params, axis)
        return ZeroState(_scattered(inner, placed), placed)

    def update(
        updates: Updates,
        state: ZeroState,
        params: Params | None = None,
        **extra_args: object,
    ) -> tuple[Updates, ZeroState]:
        state = check.state_of(_NAME, ZeroState, state)
        placed = state.placed
        g = _put(updates, placed, placed.after)
        p = None if params is None else _put(params, placed, placed.after)
        inner = _gathered(state.inner_state, placed)
        u, inner = tx.update(g, inner, p, **extra_args)
        inner = _scattered(inner, placed)
        return _put(u, placed, placed.before), ZeroState(inner, placed)

    notes = lambda params: list(_unsharded(params, axis))
    return wrapping(init, update, WrapperInfo(_NAME, tx, "inner_state", notes=notes))


def _placed(params: Params, axis: str) -> Placed:
    """The shardings of the params, now and with `axis`, if they are known."""
    leaves = jax.tree.leaves(params)
    mesh = None if any(map(_is_unknown, leaves)) else mesh_of(_NAME, params)
    if mesh is None:
        return Placed()
    if axis not in mesh.axis_names:
        raise ValueError(
            f"{_NAME}: axis is {axis!r}, but the mesh of the params has the axes "
            f"{', '.join(map(repr, mesh.axis_names))}. Pass one of them."
        )
    before = tuple(_full_spec(x) for x in leaves)
    pairs = zip(leaves, before, strict=True)
    after = tuple(_with_axis(jnp.shape(x), spec, axis, mesh) for x, spec in pairs)
    # On explicit axes, arrays know their mesh.
    explicit = AxisType.Explicit in mesh.axis_types
    return Placed(None if explicit else mesh, before, after)


def _with_memory(
    placed: Placed, tx: AnyTransformation, params: Params, axis: str
) -> Placed:
    """The same, and how the state of `tx` is sharded in a step and between steps.

    In a step, memory is sharded as `tx.init` makes it. Memory like a param is then
    sharded over `axis`, other memory, such as factors, only between steps.
    """
    leaves, treedef = jax.tree.flatten(params)
    mesh = mesh_of(_NAME, params) if placed.after else None
    if mesh is None:
        return placed
    state = jax.tree.leaves(typed_init(tx, treedef, leaves, placed.after, mesh))
    used = tuple(map(_full_spec, state))
    pairs = zip(state, used, strict=True)
    kept = tuple(_with_axis(x.shape, spec, axis, mesh) for x, spec in pairs)
    return replace(placed, used=used, kept=kept)


def _is_unknown(x: Any) -> bool:
    """Whether JAX does not tell how an array is sharded: inside `jit`."""
    if not isinstance(x, Tracer):
        return False
    return AxisType.Explicit not in jax.typeof(x).sharding.mesh.axis_types


def _full_spec(x: Any) -> PartitionSpec:
    """The spec of a param, with an entry for each axis."""
    known = isinstance(x, Tracer) or not hasattr(x, "sharding")
    where = jax.typeof(x).sharding if known else x.sharding
    spec = tuple(getattr(where, "spec", ()))
    return PartitionSpec(*spec, *[None] * (jnp.ndim(x) - len(spec)))


def _with_axis(
    shape: tuple[int, ...], spec: PartitionSpec, axis: str, mesh: AnyMesh
) -> PartitionSpec:
    """`spec` with `axis` at the first dimension that it divides, if there is one."""
    sizes = dict(zip(mesh.axis_names, mesh.axis_sizes, strict=True))
    rows = [() if x is None else x if isinstance(x, tuple) else (x,) for x in spec]
    if any(axis in row for row in rows):
        return spec
    for k, (n, row) in enumerate(zip(shape, rows, strict=True)):
        new = *row, axis
        if n and n % prod(sizes[name] for name in new) == 0:
            entry = new if row else axis
            return PartitionSpec(*spec[:k], entry, *spec[k + 1 :])
    return spec


def _unsharded(params: Params, axis: str) -> Iterator[str]:
    """A sentence for each leaf that cannot be sharded over `axis`."""
    after = _placed(params, axis).after
    rows = jax.tree_util.tree_leaves_with_path(params)
    for (path, x), spec in zip(rows, after, strict=False):
        if axis not in jax.tree.leaves(tuple(spec)):
            yield (
                f"zero: {jax.tree_util.keystr(path)} of shape {jnp.shape(x)} has no "
                f"dimension that the axis {axis!r} divides, and every device keeps all "
                "of its memory."
            )


def _put(tree: PyTree, placed: Placed, specs: tuple[PartitionSpec, ...]) -> PyTree:
    """A tree like the params, with these shardings."""
    leaves, treedef = jax.tree.flatten(tree)
    if not specs:
        return tree
    if len(leaves) != len(specs):
        raise ValueError(
            f"{_NAME}: the tree has {len(leaves)} arrays, and the params had "
            f"{len(specs)} when the state was made. {_ADVICE}"
        )
    rows = zip(leaves, specs, strict=True)
    return treedef.unflatten([_sharded(x, placed.mesh, spec) for x, spec in rows])


def _gathered(state: OptState, placed: Placed) -> OptState:
    """The inner state, as it is sharded in a step.

    On automatic axes it stays as it is, and the compiler gathers what a formula needs
    when it needs it: for SOAP and Shampoo, this sends a quarter less than to gather
    everything first (`benchmarks.zero`, JAX 0.10.2).
    """
    if placed.mesh is not None or len(jax.tree.leaves(state)) != len(placed.used):
        return state
    leaves, treedef = jax.tree.flatten(state)
    rows = zip(leaves, placed.used, placed.kept, strict=True)
    return treedef.unflatten(
        x if used == kept else _sharded(x, None, used) for x, used, kept in rows
    )


def _scattered(state: OptState, placed: Placed) -> OptState:
    """The inner state, as it is sharded between steps."""
    leaves, treedef = jax.tree.flatten(state)
    if len(leaves) != len(placed.kept):  # not known
        return state
    rows = zip(leaves, placed.kept, strict=True)
    return treedef.unflatten(_sharded(x, placed.mesh, spec) for x, spec in rows)


def _sharded(x: Any, mesh: AnyMesh | None, spec: PartitionSpec) -> Any:
    """One array, with this sharding."""
    if not isinstance(x, Tracer):
        here = getattr(getattr(x, "sharding", None), "mesh", mesh)
        if here is None:
            return x
        where = NamedSharding(here, spec)
        if isinstance(x, jax.ShapeDtypeStruct):
            return jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=where)
        return jax.device_put(x, where)
    if mesh is not None:
        return jax.lax.with_sharding_constraint(x, NamedSharding(mesh, spec))
    if _is_unknown(x):
        return x
    return reshard(x, NamedSharding(jax.typeof(x).sharding.mesh, spec))
