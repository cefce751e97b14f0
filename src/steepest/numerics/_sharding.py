"""The sharding of intermediate results."""

from collections.abc import Callable, Iterator, Sequence
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
    mesh = next((x for x in meshes if AxisType.Explicit in x.axis_types), None)
    if mesh is None:
        return f(*arrays)
    # Arrays that are on no mesh, such as factors from `tx.init`, are replicated.
    there = lambda x: NamedSharding(mesh, PartitionSpec()) if x.mesh.empty else x
    anywhere: Any = jax.sharding.auto_axes(f, out_sharding=jax.tree.map(there, where))
    return anywhere(*arrays)


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


def reshaped(x: Array, shape: Sequence[int], like: Array | None = None) -> Array:
    """`x` in another shape; on explicit axes, with a sharding that fits.

    JAX can infer it only for some shapes, and raises an error for the others. A mesh
    axis stays with the numbers that it shards: if an axis of `x` is split, it goes to
    the first new axis that it divides; if axes of `x` are merged, it goes to the merged
    one. A mesh axis that divides none is left out. On every other mesh this is
    `x.reshape(shape)`.

    Args:
        x: an array.
        shape: the new shape.
        like: an array of the new shape; its sharding is used.
    """
    where = jax.typeof(x if like is None else like).sharding
    if AxisType.Explicit not in where.mesh.axis_types:
        return x.reshape(shape)
    if like is None:
        rows: list[Any] = [None] * len(shape)
        for old, new in _matched(x.shape, shape) if x.size else ():
            spec = [where.spec[k] for k in old]
            fits = _fitting(spec, [shape[k] for k in new], where.mesh)
            for k, entry in zip(new, fits, strict=True):
                rows[k] = entry
        where = NamedSharding(where.mesh, PartitionSpec(*rows))
    return jax.lax.reshape(x, shape, out_sharding=where)


def sliced(x: Array, spans: Sequence[slice]) -> Array:
    """A part of `x`; on explicit axes, sharded over the mesh axes that divide it.

    Args:
        x: an array.
        spans: the part of each of the last axes.
    """
    where, index = jax.typeof(x).sharding, (..., *spans)
    if AxisType.Explicit not in where.mesh.axis_types:
        return x[index]
    start = x.ndim - len(spans)
    pairs = zip(x.shape[start:], spans, strict=True)
    lengths = [len(range(n)[span]) for n, span in pairs]
    ends = zip(where.spec[start:], lengths, strict=True)
    fits = [_fitting([entry], [n], where.mesh)[0] for entry, n in ends]
    spec = PartitionSpec(*where.spec[:start], *fits)
    part: Any = jax.sharding.auto_axes(
        lambda x: x[index], out_sharding=NamedSharding(where.mesh, spec)
    )
    return part(x)


def _matched(
    old: Sequence[int], new: Sequence[int]
) -> Iterator[tuple[Sequence[int], Sequence[int]]]:
    """Which axes of a shape become which axes of another one.

    Args:
        old: the old shape, without zeros.
        new: the new shape, of as many numbers.
    """
    i = j = 0
    while i < len(old) or j < len(new):
        a, b = i, j
        i, j = min(i + 1, len(old)), min(j + 1, len(new))
        while (m := prod(old[a:i])) != (n := prod(new[b:j])):
            if j == len(new) or (m < n and i < len(old)):
                i += 1
            else:
                j += 1
        yield range(a, i), range(b, j)


def _fitting(spec: Sequence[Any], lengths: Sequence[int], mesh: AnyMesh) -> list[Any]:
    """The mesh axes of a spec, each at the first of these axes that it divides.

    Args:
        spec: entries of a `PartitionSpec`.
        lengths: the lengths of the axes of an array.
        mesh: a mesh.
    """
    rows: list[tuple[str, ...]] = [() for _ in lengths]
    for name in jax.tree.leaves(tuple(spec)):
        for k, n in enumerate(lengths):
            if n % prod(mesh.shape[x] for x in (*rows[k], name)) == 0:
                rows[k] = *rows[k], name
                break
    return [row if len(row) > 1 else row[0] if row else None for row in rows]


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
