"""Where an array lives while it is computed with."""

from collections.abc import Callable
from typing import Any

import jax
from jax.sharding import AxisType


def sharded_like(like: Any, f: Callable[..., Any], *arrays: Any) -> Any:
    """`f(*arrays)`, sharded as `like` is; in between the compiler decides.

    On a mesh with explicit axes a product of sharded matrices has no sharding of its
    own, and JAX asks for one. On every other mesh this is `f(*arrays)`.

    Args:
        like: an array of as many axes as the result; a tree of them, of the same
            structure, where the result is a tree.
        f: a function of arrays.
        arrays: its arguments.
    """
    where = jax.tree.map(lambda x: jax.typeof(x).sharding, like)
    meshes = [x.mesh for x in jax.tree.leaves(where)]
    if any(AxisType.Explicit in mesh.axis_types for mesh in meshes):
        anywhere: Any = jax.sharding.auto_axes(f, out_sharding=where)
        return anywhere(*arrays)
    return f(*arrays)
