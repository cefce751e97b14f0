"""Leaves that are alike go through a formula together: fewer calls, the same numbers.

A call of a compiled function costs as much as a small leaf: outside `jit` to dispatch
it, inside to trace and lower it.
"""

from collections.abc import Hashable, Sequence
from typing import Any

from jax.core import Tracer

from ...numerics import varying

MOST = 8  # leaves in a call: of 16 the first call would compile half as long again


def alike(x: Any) -> tuple[Any, ...]:
    """What two leaves must have in common to share a call: shape, dtype, devices.

    Inside `shard_map`, also the mesh axes over which they vary.
    """
    where = varying(x) if isinstance(x, Tracer) else getattr(x, "sharding", None)
    return x.shape, x.dtype, where


def batches(kinds: Sequence[Hashable]) -> list[list[int]]:
    """The places of equal kinds, by 8, 4, 2 and 1, so that few sizes are compiled.

    >>> batches(["a", "b", "a", None, "a"])
    [[0, 2], [4], [1]]

    Args:
        kinds: for each leaf, its kind; `None` for one that is left out.
    """
    places: dict[Hashable, list[int]] = {}
    for k, kind in enumerate(kinds):
        if kind is not None:
            places.setdefault(kind, []).append(k)
    found = []
    for row in places.values():
        while row:
            size = min(MOST, 1 << (len(row).bit_length() - 1))
            found.append(row[:size])
            row = row[size:]
    return found
