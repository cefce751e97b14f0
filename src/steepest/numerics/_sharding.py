"""Where an array lives while it is computed with."""

from collections.abc import Callable
from typing import Any

import jax
from jax.sharding import AxisType
from jaxtyping import Array


def sharded_like(like: Array, f: Callable[..., Array], *arrays: Any) -> Array:
    """`f(*arrays)`, sharded as `like` is; in between the compiler decides.

    On a mesh with explicit axes a product of sharded matrices has no sharding of its
    own, and JAX asks for one. On every other mesh this is `f(*arrays)`.

    Args:
        like: an array of as many axes as the result.
        f: a function of arrays.
        arrays: its arguments.
    """
    where = jax.typeof(like).sharding
    if AxisType.Explicit in where.mesh.axis_types:
        anywhere: Any = jax.sharding.auto_axes(f, out_sharding=where)
        return anywhere(*arrays)
    return f(*arrays)
