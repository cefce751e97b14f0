"""Sums over the devices of a mesh, inside `jax.shard_map`.

There a function sees only its own device's shard of each array, and the norm of a
shard is not the norm of the whole array.
"""

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, PyTree

from ..core import MeshAxes

T = TypeVar("T")


def split_over(axes: MeshAxes | None, *arrays: ArrayLike) -> tuple[str, ...]:
    """The named mesh axes over which the arrays are split.

    Outside `shard_map` there are none: the arrays are whole. Inside, JAX tracks the
    axes over which an array varies. With `check_vma=False` it does not, and every array
    counts as split over all of them.

    Args:
        axes: the result of `mesh_axes`.
        arrays: the arrays that are measured together.
    """
    if axes is None:
        return ()
    bound = [name for name in axes.names if _is_bound(axes, name)]
    if not bound:
        return ()
    known = frozenset[str]().union(*map(varying, arrays))
    tracked = lambda name: name in varying(jax.lax.axis_index(name))
    return tuple(name for name in bound if name in known or not tracked(name))


def sum_over(where: Sequence[str], x: T) -> T:
    """The sum of an array or a tree over these mesh axes; `x` itself if there are none.

    Args:
        where: the result of `split_over`.
        x: the value on each device.
    """
    return jax.lax.psum(x, tuple(where)) if where else x


def max_over(where: Sequence[str], x: Array) -> Array:
    """The largest value over these mesh axes; `x` itself if there are none."""
    return jax.lax.pmax(x, tuple(where)) if where else x


def any_over(where: Sequence[str], yes: Array) -> Array:
    """Whether `yes` holds on any device along these mesh axes."""
    return jax.lax.psum(yes.astype(jnp.int32), tuple(where)) > 0 if where else yes


def parts_over(where: Sequence[str]) -> int:
    """The number of shards of an array that is split over these mesh axes."""
    return prod(jax.lax.axis_size(name) for name in where)


def by_split(
    axes: MeshAxes | None, leaves: Sequence[PyTree]
) -> dict[tuple[str, ...], list[int]]:
    """The indices of the leaves, grouped by the mesh axes they are split over.

    Each group needs one sum over devices. A leaf that is replicated on every device is
    in the group without axes, and counts once.

    Args:
        axes: the result of `mesh_axes`.
        leaves: each an array, or a tree of arrays that are measured together.
    """
    if axes is None:
        return {(): list(range(len(leaves)))}
    groups: dict[tuple[str, ...], list[int]] = {}
    for k, x in enumerate(leaves):
        groups.setdefault(split_over(axes, *jax.tree.leaves(x)), []).append(k)
    return groups


def sum_of_leaves(
    axes: MeshAxes | None,
    measure: Callable[[PyTree], Array],
    leaves: Sequence[PyTree],
    start: Array,
) -> Array:
    """The sum of `measure` over all leaves, on all devices.

    Args:
        axes: the result of `mesh_axes`.
        measure: a function of a leaf.
        leaves: each an array, or a tree of arrays that are measured together.
        start: zeros of the shape and dtype that `measure` returns.
    """
    total = start
    for where, places in by_split(axes, leaves).items():
        parts = [measure(leaves[k]) for k in places]
        total = total + sum_over(where, sum(parts, start))
    return total


def varying(x: ArrayLike) -> frozenset[str]:
    """The mesh axes over which `x` varies, as tracked by JAX."""
    kind: Any = jax.typeof(x)
    # Renamed between JAX 0.10.0 and 0.10.2.
    return kind.manual_axis_type.varying if _RENAMED else kind.vma


_RENAMED = hasattr(jax.typeof(0.0), "manual_axis_type")


def _is_bound(axes: MeshAxes, name: str) -> bool:
    """Whether arrays here are shards along this mesh axis."""
    try:
        jax.lax.axis_size(name)
    except NameError:
        known = jax.sharding.get_abstract_mesh().axis_names
        if known and name not in known:
            raise ValueError(
                f"{axes.name}: axis_name has {name!r}, but the mesh has the axes "
                f"{known}. Name the axes over which the arrays are split."
            ) from None
        return (
            False  # `jit` shards the arrays along this axis, and does the sums itself
        )
    return True
