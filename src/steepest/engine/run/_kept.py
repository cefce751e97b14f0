"""Stacks of leaves whose memory is kept as one, on one device.

Such a stack runs through the formulas like a leaf with many matrices. Its memory is
never joined nor split; only the gradients are joined, and the updates are split.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PyTree

from ...numerics import replicated, sharded_like
from ..leaves import Leaf, restore
from ._formula import COMPILED
from ._grouping import Shape
from ._joined import common_dtype, Stack, where_on
from ._memory import Memory


@dataclass(frozen=True)
class KeptStack:
    """Some leaves, and their memory in one stack."""

    place: int  # its index among the stacks of the memory
    leaves: tuple[int, ...]
    shapes: tuple[Shape, ...]  # of the leaves, as stacks of matrices
    memory: dict[str, PyTree]  # by the names in signatures

    @property
    def shape(self) -> Shape:
        """The shape of the stack."""
        return len(self.order), *self.shapes[0][-2:]

    @property
    def order(self) -> list[tuple[int, int]]:
        """For each matrix, its leaf, and where it is among the matrices of that."""
        pairs = zip(self.leaves, self.shapes, strict=True)
        return [(k, i) for k, shape in pairs for i in range(prod(shape[:-2]))]

    def joined(self, xs: Mapping[int, Leaf]) -> Array:
        """The leaves as one stack. A leaf that is missing counts as zero.

        Args:
            xs: some leaves, by their numbers.
        """
        mine = [xs.get(k) for k in self.leaves]
        return _joining(self.shapes, np.dtype(common_dtype(mine)))(mine)

    def split(
        self, u: Leaf, xs: Mapping[int, Leaf], dtypes: Sequence[np.dtype | None]
    ) -> dict[int, Array]:
        """The results of the leaves.

        Args:
            u: the result of the stack.
            xs: the leaves that were joined.
            dtypes: the dtype of each result; `None` to leave it as it is.
        """
        mine = [xs.get(k) for k in self.leaves]
        wanted = tuple(dtypes[k] for k in self.leaves)
        us = _splitting(self.shapes, wanted)(u, mine)
        pairs = zip(self.leaves, us, strict=True)
        return {k: x for k, x in pairs if x is not None}

    def only_where(self, xs: Mapping[int, Leaf], new: PyTree, old: PyTree) -> PyTree:
        """The new memory of the matrices in `xs`, and the old one of the others."""
        on = np.array([k in xs for k, _ in self.order])
        return new if on.all() else where_on(jnp.asarray(on), new, old)


def kept_stacks(memory: Memory, xs: Mapping[int, Leaf]) -> dict[int, KeptStack]:
    """The stacks with some of the leaves, by the first leaf of each.

    Args:
        memory: the memory of all rules of a pass.
        xs: the leaves of the last rule, by their numbers.
    """
    rule, found = memory.rules[-1], {}
    for s, ks in enumerate(memory.teams):
        layout = memory.layout
        if layout.devices > 1:
            raise ValueError(
                f"{rule.title}: the state keeps its stacks on {layout.devices} "
                "devices, expected one. Convert it: `steepest.restore_as(state, tx, "
                "params)`."
            )
        if any(k in xs for k in ks):
            shapes = tuple(layout.folded[j] or () for j in layout.stacks[s])
            found[ks[0]] = KeptStack(s, tuple(ks), shapes, memory.stack(s))
    return found


@lru_cache(maxsize=COMPILED)
def _joining(
    shapes: tuple[Shape, ...], dtype: np.dtype
) -> Callable[[list[Any]], Array]:
    """A compiled function that joins leaves, or `None` for leaves without an update."""
    stack = Stack(shapes)

    def join(xs: Sequence[Array | None]) -> Array:
        pairs = zip(xs, shapes, strict=True)
        zeros = lambda shape: jnp.zeros(shape, dtype)
        return stack.joined(
            [zeros(shape) if x is None else x.astype(dtype) for x, shape in pairs]
        )

    return jax.jit(lambda xs: replicated(join, xs))


@lru_cache(maxsize=COMPILED)
def _splitting(
    shapes: tuple[Shape, ...], dtypes: tuple[np.dtype | None, ...]
) -> Callable[[Leaf, list[Any]], list[Any]]:
    """A compiled function that splits a stack into arrays like some leaves."""
    stack = Stack(shapes)

    def split(u: Array, xs: Sequence[Array | None]) -> list[Array | None]:
        rows = zip(stack.parts(u), xs, dtypes, strict=True)
        return [
            None if x is None else restore(part.reshape(x.shape), dtype or part.dtype)
            for part, x, dtype in rows
        ]

    return jax.jit(lambda u, xs: sharded_like(xs, split, u, xs))
