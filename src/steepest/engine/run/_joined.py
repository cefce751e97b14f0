"""Arrays of matrices, joined into one stack, and split again."""

from collections.abc import Callable, Sequence
from functools import partial
from math import prod

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, PyTree

from ...numerics import joins_rows, members, Sum, unknown
from ..leaves import Leaf, restore, wide_dtype_of
from ._formula import Row
from ._grouping import Shape, wide_shape

Pick = Callable[[Array], Array]  # an array of the stack -> the part of one array


class Stack:
    """How arrays are joined into one stack of matrices, and split again.

    If tall and wide matrices share a stack, the tall ones are transposed, and their
    results are transposed back.
    """

    def __init__(self, shapes: Sequence[Shape]):
        ends = {shape[-2:] for shape in shapes}
        self.matrix = ends.pop() if len(ends) == 1 else wide_shape(shapes[0])
        self.is_one_matrix = len(shapes) == 1 and len(shapes[0]) == 2
        self._shapes = shapes
        self._sizes = [prod(shape[:-2]) for shape in shapes]  # matrices in each array
        self._ends = np.cumsum([0, *self._sizes]).tolist()

    def joined(self, xs: Sequence[Array]) -> Array:
        """The arrays as one stack of shape (size, m, n)."""
        m, n = self.matrix
        by_rows = joins_rows(xs[0])
        part = lambda size: (size * m, n) if by_rows else (size, m, n)
        rows = zip(xs, self._shapes, self._sizes, strict=True)
        parts = [
            self._turned(x.reshape(shape), shape).reshape(part(size))
            for x, shape, size in rows
        ]
        return jnp.concatenate(parts).reshape(self._ends[-1], m, n)

    def joined_memory(self, rows: Sequence[Row]) -> Row:
        """The memory of the arrays, with one leading axis of the same size."""

        def join(*ys: Array) -> Array:
            memory = zip(ys, self._shapes, self._sizes, strict=True)
            return jnp.concatenate(
                [
                    jax.lax.reshape(y, (size, *y.shape[len(shape) - 2 :]))
                    for y, shape, size in memory
                ]
            )

        return jax.tree.map(join, *rows)

    def split(
        self,
        results: tuple[Array, Row],
        xs: Sequence[Array],
        rows: Sequence[Row],
        joined: Row,
        one_device: bool,
    ) -> list[tuple[Array, Row]]:
        """The result and the memory of each array, in the shapes of `xs` and `rows`.

        Args:
            results: of the formula, for the stack.
            xs: the arrays.
            rows: the memory of each.
            joined: the memory of the stack, before the formula.
            one_device: whether the stack is not shared by several devices.
        """
        (us, memory), parts = results, []
        picks = self._picks(one_device)
        pairs = zip(self.parts(us, picks), xs, rows, picks, strict=True)
        for u, x, row, pick in pairs:
            new = partial(_new_memory, pick)
            parts.append((u.reshape(x.shape), jax.tree.map(new, joined, row, memory)))
        return parts

    def parts(self, us: Array, picks: Sequence[Pick] | None = None) -> list[Array]:
        """The part of each array, as a stack of matrices.

        Args:
            us: the stack.
            picks: how to take them out of it, if that is known.
        """
        picks = self._picks(one_device=True) if picks is None else picks
        pairs = zip(picks, self._shapes, strict=True)
        return [self._turned(pick(us), shape) for pick, shape in pairs]

    def _picks(self, one_device: bool) -> list[Pick]:
        """For each array: an array of the stack -> its part."""
        starts = self._ends[:-1]
        starts = unknown(starts) if one_device else starts

        def pick(k: int, y: Array) -> Array:
            mine = members(y, starts[k], self._sizes[k])
            return jax.lax.reshape(mine, (*self._shapes[k][:-2], *y.shape[1:]))

        return [partial(pick, k) for k in range(len(starts))]

    def _turned(self, x: Array, shape: Shape) -> Array:
        return x if shape[-2:] == self.matrix else x.mT


def common_dtype(xs: Sequence[Leaf | None]) -> np.dtype:
    """The dtype of all leaves, or a wide one if they differ.

    Args:
        xs: the leaves, or `None` where one is missing.
    """
    dtypes = {x.dtype for x in xs if x is not None}
    return dtypes.pop() if len(dtypes) == 1 else wide_dtype_of(xs)


def where_on(on: Bool[Array, " n"], new: PyTree, old: PyTree) -> PyTree:
    """The new memory of some matrices of a stack, and the old one of the others.

    Args:
        on: for each matrix, whether it has new memory.
        new: the new memory of the stack.
        old: the old one.
    """
    pick = lambda x: on.reshape(-1, *[1] * (x.ndim - 1))
    return jax.tree.map(lambda x, y: jnp.where(pick(x), x, y), new, old)


def _new_memory(pick: Pick, was: Array, old: Array, new: Array | Sum) -> Array:
    """The new memory of one leaf.

    Args:
        pick: an array of the stack -> the part of the leaf.
        was: the memory of the stack, before the formula.
        old: the memory of the leaf.
        new: the memory of the stack, after the formula.
    """
    if new is was:  # the formula does not change it
        return old
    if isinstance(new, Sum):
        return restore(new.part(pick).after(old), old.dtype)
    return pick(new)
