"""Similar leaves share one call of a compiled formula. The results are the same.

A call costs as much as the work on a small leaf: outside `jit` for dispatch, inside
`jit` for tracing and lowering.
"""

from collections.abc import Hashable, Sequence
from typing import TypeAlias

import jax
import numpy as np
from jax.core import Tracer
from jaxtyping import Array

from ...numerics import varying

Leaf: TypeAlias = Array | np.ndarray | np.generic  # an array of JAX or NumPy
MOST = 8  # leaves per call; with 16, the first call compiles 1.5 times as long


def alike(
    x: Leaf | jax.ShapeDtypeStruct,
) -> tuple[tuple[int, ...], np.dtype, object]:
    """What two leaves must have in common to share a call: shape, dtype, sharding.

    A tracer has, instead of a sharding, the mesh axes over which it varies.
    """
    where = varying(x) if isinstance(x, Tracer) else getattr(x, "sharding", None)
    return x.shape, x.dtype, where


def batches(kinds: Sequence[Hashable]) -> list[list[int]]:
    """Indices of equal kinds, in batches of 8, 4, 2 and 1, so few sizes are compiled.

    >>> batches(["a", "b", "a", None, "a"])
    [[0, 2], [4], [1]]

    Args:
        kinds: the kind of each leaf; `None` to leave a leaf out.
    """
    by_kind: dict[Hashable, list[int]] = {}
    for k, kind in enumerate(kinds):
        if kind is not None:
            by_kind.setdefault(kind, []).append(k)
    result = []
    for row in by_kind.values():
        while row:
            size = min(MOST, 1 << (len(row).bit_length() - 1))
            result.append(row[:size])
            row = row[size:]
    return result
