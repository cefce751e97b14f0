"""The sharding of each array of a state, from the shardings of the params.

JAX infers it. On a mesh with explicit axes the sharding of an array is part of its
type, so tracing `tx.init` with typed params gives the sharding of every array that is
made from a param: of the same shape, of one row, or of a stack. Here this is done for
every mesh, with explicit axes in place of its own.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import jax
from jax.core import Tracer
from jax.sharding import (
    AbstractMesh,
    AxisType,
    Mesh,
    NamedSharding,
    PartitionSpec,
    Sharding,
    SingleDeviceSharding,
    use_abstract_mesh,
)
from jaxtyping import PyTree

from ...core import AnyTransformation, as_inner, Params, ShardedLeaf
from ...tree import owner_of
from ..step import on_mesh, WrapperInfo

AnyMesh = Mesh | AbstractMesh


def shardings(tx: AnyTransformation, params: Params) -> PyTree:
    """The sharding of each array of the state that `tx` makes for these params.

    Memory in the shape of a param has its sharding. Memory of another shape that is
    made from a param, such as the mean of each row, is sharded along the axes that it
    shares with the param. Everything else is replicated: counts, keys, factors. With
    `reshard`, stacks of memory are sharded over the devices that compute their
    matrices, and factors and bases of a single matrix along a side. If the params are
    on one device, so is the state. No array is made.

    Use it as the target of a restore, as `out_shardings`, and for `place`.

    Args:
        tx: any transformation.
        params: the params, or `ShapeDtypeStruct`s with a `sharding`. On a mesh, all on
            one mesh; arrays without a sharding count as replicated.

    >>> import jax, jax.numpy as jnp, steepest
    >>> from jax.sharding import NamedSharding, PartitionSpec
    >>> mesh = jax.make_mesh((1,), ("data",))
    >>> where = NamedSharding(mesh, PartitionSpec("data"))
    >>> params = {"w": jax.ShapeDtypeStruct((8, 4), jnp.float32, sharding=where)}
    >>> state = steepest.shardings(steepest.adamw(1e-3), params)
    >>> state[0].mu["w"].spec, state[0].count.spec
    (P('data', None), P())
    """
    state = placed_shapes(as_inner("shardings", "tx", tx), params)
    return jax.tree.map(lambda x: x.sharding, state)


def placed_shapes(tx: AnyTransformation, params: Params) -> PyTree:
    """The shapes of the state that `tx` makes, with the shardings of `shardings`.

    Args:
        tx: any transformation.
        params: the params, or their shapes.
    """
    leaves, treedef = jax.tree.flatten(params)
    mesh = mesh_of("shardings", params)
    if mesh is None:
        where = [getattr(x, "sharding", None) for x in leaves]
        where = next((x for x in where if x is not None), None) or _default()
        return _in_memory(tx, _init_shapes(tx, params, where))
    specs = [_spec(x) for x in leaves]
    kinds = {getattr(_known(x), "memory_kind", None) for x in leaves}
    kind = kinds.pop() if len(kinds) == 1 else None

    def placed(x: Any) -> NamedSharding:
        # Counts and other scalars are read in every step, so they stay on the device.
        memory = x.sharding.memory_kind or (kind if x.ndim else None)
        return NamedSharding(mesh, x.sharding.spec, memory_kind=memory)

    types = typed_init(tx, treedef, leaves, specs, mesh)
    put = lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=placed(x))
    return _in_memory(tx, on_mesh(jax.tree.map(put, types), mesh))


def memory_of(tx: AnyTransformation) -> Any:
    """The function that moves the shapes of a state to the memory of `tx`, or `None`.

    `offload` has one.
    """
    info = getattr(tx, "info", None)
    return info.memory if isinstance(info, WrapperInfo) else None


def _in_memory(tx: AnyTransformation, state: PyTree) -> PyTree:
    """The shapes of a state, in the memory where `tx` keeps it."""
    move = memory_of(tx)
    return state if move is None else move(state)


def mesh_of(name: str, params: Params) -> AnyMesh | None:
    """The mesh of the params; `None` if they are on one device, or nowhere yet.

    Args:
        name: name used in error messages.
        params: the params, or their shapes.
    """
    mesh: AnyMesh | None = None
    first = ""
    for keys, x in jax.tree_util.tree_leaves_with_path(params):
        path, where = jax.tree_util.keystr(keys), _known(x)
        if where is None:
            if isinstance(x, Tracer):
                raise TypeError(
                    f"{name}: the sharding of params{path} is not known inside `jit`, "
                    "since the axes of its mesh are not explicit. Call this outside "
                    "of `jit`."
                )
            continue
        if not isinstance(where, NamedSharding):
            if len(where.device_set) == 1:
                continue
            raise TypeError(
                f"{name}: params{path} has a {type(where).__name__}, expected a "
                "NamedSharding. Put the params on a mesh with `jax.device_put`."
            )
        if mesh is None:
            mesh, first = where.mesh, path
        if where.mesh != mesh:
            raise ValueError(
                f"{name}: params{path} is on the mesh {where.mesh} and params{first} "
                f"on {mesh}, expected one mesh. Put all params on one mesh with "
                "`jax.device_put`."
            )
    return mesh


def _known(x: Any) -> Any:
    """The sharding of an array or of a shape; `None` if it has none."""
    if not isinstance(x, Tracer):
        return getattr(x, "sharding", None)
    where = jax.typeof(x).sharding
    return where if AxisType.Explicit in where.mesh.axis_types else None


def _spec(x: Any) -> PartitionSpec | None:
    return getattr(_known(x), "spec", None)


def typed_init(
    tx: AnyTransformation,
    treedef: Any,
    leaves: Sequence[Any],
    specs: Sequence[PartitionSpec | None],
    mesh: AnyMesh,
) -> PyTree:
    """The shapes of the state, with shardings on a mesh with explicit axes.

    Args:
        tx: any transformation.
        treedef: the structure of the params.
        leaves: the params, or their shapes.
        specs: the sharding of each, or `None` if it is replicated.
        mesh: a mesh with any kind of axes.
    """
    axes = mesh.axis_names
    explicit = (AxisType.Explicit,) * len(axes)
    typed = AbstractMesh(mesh.axis_sizes, axes, axis_types=explicit)

    def shapes(mesh: AbstractMesh | None) -> Params:
        at = lambda spec: mesh and NamedSharding(mesh, spec or PartitionSpec())
        return treedef.unflatten(
            jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=at(spec))
            for x, spec in zip(map(jax.typeof, leaves), specs, strict=True)
        )

    replicated = NamedSharding(typed, PartitionSpec())
    try:
        with use_abstract_mesh(typed):
            return _init_shapes(tx, shapes(typed), replicated)
    except ShardedLeaf:
        raise
    except Exception:
        # JAX cannot infer the sharding of some functions, such as a concatenation of
        # leaves. If something else is wrong, this raises the same error again.
        plain = AbstractMesh(mesh.axis_sizes, axes)
        with use_abstract_mesh(plain):
            state = _init_shapes(tx, shapes(None), replicated)
        return _by_path(state, shapes(typed))


def _init_shapes(tx: AnyTransformation, params: Params, rest: Sharding) -> PyTree:
    """The shapes of a state, with shardings and kinds of memory.

    Args:
        tx: any transformation.
        params: the params, or their shapes.
        rest: for arrays whose type does not tell their sharding.
    """
    # `jax.eval_shape` does not tell which arrays are in the memory of the host.
    traced = jax.jit(partial(tx.init)).trace(params)
    leaves, treedef = jax.tree.flatten(traced.out_info)

    def leaf(x: Any, type_: Any) -> jax.ShapeDtypeStruct:
        where = x.sharding or rest
        if type_.memory_space == jax.memory.Space.Host:
            where = where.with_memory_kind("pinned_host")
        return jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=where)

    rows = zip(leaves, traced.jaxpr.out_avals, strict=True)
    return treedef.unflatten([leaf(*row) for row in rows])


def _by_path(state: PyTree, params: Params) -> PyTree:
    """The shapes of a state, with the shardings of the params with their paths."""
    rows = jax.tree_util.tree_leaves_with_path(params)
    owners = {path: k for k, (path, _) in enumerate(rows)}

    def leaf(path: Any, x: Any) -> Any:
        k = owner_of(path, owners)
        if k is None or rows[k][1].shape != x.shape:
            return x
        where = rows[k][1].sharding.update(memory_kind=x.sharding.memory_kind)
        return jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=where)

    return jax.tree_util.tree_map_with_path(leaf, state)


def _default() -> Sharding:
    """The device on which JAX makes arrays."""
    device: Any = jax.config.jax_default_device  # pyright: ignore
    if not isinstance(device, jax.Device):
        device = jax.local_devices(backend=device)[0]
    return SingleDeviceSharding(device)
