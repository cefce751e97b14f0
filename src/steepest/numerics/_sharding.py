"""The sharding of intermediate results."""

from collections.abc import Callable
from typing import Any, TypeVar

import jax
from jax.core import Tracer
from jax.sharding import AxisType, NamedSharding, PartitionSpec, reshard
from jaxtyping import Array, PyTree

from ..core import Param

T = TypeVar("T")


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
