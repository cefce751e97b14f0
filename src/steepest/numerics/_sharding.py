"""The sharding of intermediate results."""

from collections.abc import Callable
from math import prod
from typing import Any, TypeVar

import jax
from jax.core import Tracer
from jax.sharding import (
    AbstractMesh,
    AxisType,
    get_abstract_mesh,
    Mesh,
    NamedSharding,
    PartitionSpec,
    reshard,
)
from jaxtyping import Array, PyTree

from ..core import Param

T = TypeVar("T")
AnyMesh = Mesh | AbstractMesh


def sharded_like(like: PyTree, f: Callable[..., T], *arrays: PyTree) -> T:
    """`f(*arrays)`, sharded like `like`; the compiler shards the intermediate results.

    On a mesh with explicit axes JAX cannot infer the sharding of a product of sharded
    matrices, and asks for one. On every other mesh this is `f(*arrays)`.

    Args:
        like: an array with as many axes as the result; if the result is a tree, a tree
            of such arrays with the same structure.
        f: a function of arrays.
        arrays: its arguments.
    """
    where = jax.tree.map(lambda x: jax.typeof(x).sharding, like)
    meshes = [x.mesh for x in jax.tree.leaves(where)]
    if any(AxisType.Explicit in mesh.axis_types for mesh in meshes):
        anywhere: Any = jax.sharding.auto_axes(f, out_sharding=where)
        return anywhere(*arrays)
    return f(*arrays)


def replicated(f: Callable[..., T], *arrays: PyTree) -> T:
    """`f(*arrays)`, replicated; the compiler shards the intermediate results.

    On a mesh without explicit axes, this is `f(*arrays)`.

    Args:
        f: a function of arrays.
        arrays: its arguments.
    """
    for x in jax.tree.leaves(arrays):
        mesh = jax.typeof(x).sharding.mesh
        if AxisType.Explicit in mesh.axis_types:
            where = NamedSharding(mesh, PartitionSpec())
            anywhere: Any = jax.sharding.auto_axes(f, out_sharding=where)
            return anywhere(*arrays)
    return f(*arrays)


def replicated_near(p: Param, x: Array) -> Array:
    """`x`, replicated on the mesh of `p` if that has explicit axes.

    New zeros are on no mesh, unless there is a `jax.set_mesh` around them. A step would
    return them on the mesh, with another type. On every other mesh this is `x`.

    Args:
        p: a param.
        x: a new array, made without `p`.
    """
    mesh = jax.typeof(p).sharding.mesh
    if AxisType.Explicit not in mesh.axis_types:
        return x
    if isinstance(p, Tracer):
        return reshard(x, NamedSharding(mesh, PartitionSpec()))
    here = getattr(getattr(p, "sharding", None), "mesh", mesh)
    return jax.device_put(x, NamedSharding(here, PartitionSpec()))


def meshes_near(x: Any) -> list[AnyMesh]:
    """The mesh that is set, and those that `x` is on, as far as JAX knows them.

    Args:
        x: an array, or its shape.
    """
    meshes: list[AnyMesh] = [get_abstract_mesh(), jax.typeof(x).sharding.mesh]
    where = None if isinstance(x, Tracer) else getattr(x, "sharding", None)
    return [*meshes, where.mesh] if isinstance(where, NamedSharding) else meshes


def sharded_near(p: Param, x: Array, axes: tuple[str, ...], k: int) -> Array:
    """`x`, whose axis `k` is sharded over some axes of the mesh of `p`.

    Where they do not divide it, or JAX does not know the mesh, as inside `jit` without
    `jax.set_mesh`, this is `x`.

    Args:
        p: a param.
        x: a new array, made without `p`.
        axes: names of mesh axes.
        k: an axis of `x`. If `x` has fewer axes, it is not sharded.
    """
    if not axes or x.ndim <= k:
        return x
    traced = isinstance(p, Tracer) or isinstance(x, Tracer)
    for mesh in meshes_near(p):
        types = dict(zip(mesh.axis_names, mesh.axis_types, strict=True))
        kinds = {types.get(name) for name in axes}
        if None in kinds or x.shape[k] % prod(mesh.shape[name] for name in axes):
            continue
        where = NamedSharding(mesh, PartitionSpec(*[None] * k, axes))
        if not traced and isinstance(mesh, Mesh):
            return jax.device_put(x, where)
        if traced and kinds == {AxisType.Explicit}:
            return reshard(x, where)
        if traced and kinds == {AxisType.Auto}:
            return jax.lax.with_sharding_constraint(x, where)
    return x
