"""Sums over the devices of a mesh, inside `jax.shard_map`.

There a function sees only the part of each array that its own device has, and a norm
of it is not the norm of the whole.
"""

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
from jaxtyping import Array

from ..core import MeshAxes

T = TypeVar("T")


def split_over(axes: MeshAxes | None, *arrays: Any) -> tuple[str, ...]:
    """Of the named mesh axes, those over which the arrays differ between devices.

    Outside `shard_map` there are none: the arrays are whole. Inside, JAX knows over
    which axes an array varies. With `check_vma=False` it does not, and every array
    counts as split over all of them.

    Args:
        axes: what `mesh_axes` returned.
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
    """The sum over these mesh axes, of an array or a tree; `x` itself if none.

    Args:
        where: what `split_over` returned.
        x: what each device has measured.
    """
    return jax.lax.psum(x, tuple(where)) if where else x


def any_over(where: Sequence[str], yes: Array) -> Array:
    """Whether `yes` holds on any device along these mesh axes."""
    return jax.lax.psum(yes.astype(jnp.int32), tuple(where)) > 0 if where else yes


def parts_over(where: Sequence[str]) -> int:
    """Into how many parts an array that is split over these mesh axes is divided."""
    return prod(jax.lax.axis_size(name) for name in where)


def by_split(
    axes: MeshAxes | None, leaves: Sequence[Any]
) -> dict[tuple[str, ...], list[int]]:
    """The places of leaves that are split over the same mesh axes.

    What is measured of each group takes one sum over devices. A leaf that every device
    has whole is in a group without axes, and counts once.

    Args:
        axes: what `mesh_axes` returned.
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
    measure: Callable[[Any], Array],
    leaves: Sequence[Any],
    start: Array,
) -> Array:
    """The sum of `measure` over all leaves, on all devices.

    Args:
        axes: what `mesh_axes` returned.
        measure: a function of a leaf.
        leaves: each an array, or a tree of arrays that are measured together.
        start: zeros of the shape and dtype that `measure` returns.
    """
    total = start
    for where, places in by_split(axes, leaves).items():
        parts = [measure(leaves[k]) for k in places]
        total = total + sum_over(where, sum(parts, start))
    return total


def varying(x: Any) -> frozenset[str]:
    """The mesh axes over which JAX knows that `x` varies."""
    kind: Any = jax.typeof(x)
    # Renamed between JAX 0.10.0 and 0.10.2.
    return kind.manual_axis_type.varying if _RENAMED else kind.vma


_RENAMED = hasattr(jax.typeof(0.0), "manual_axis_type")


def _is_bound(axes: MeshAxes, name: str) -> bool:
    """Whether arrays here are parts, one for each device along this mesh axis."""
    try:
        jax.lax.axis_size(name)
    except NameError:
        known = jax.sharding.get_abstract_mesh().axis_names
        if known and name not in known:
            raise ValueError(
                f"{axes.who}: axis_name has {name!r}, and the mesh here has the axes "
                f"{known}. Name those over which the arrays are split."
            ) from None
        return False  # `jit` divides the arrays along this axis, and sums by itself
    return True
