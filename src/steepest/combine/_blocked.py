"""Cut large matrices into blocks, for transformations that are expensive for them.

Gupta, Koren and Singer, Shampoo: preconditioned stochastic tensor optimization, 2018,
arXiv:1802.09568
"""

from functools import partial
from math import prod
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, PyTree

from .. import check
from ..core import (
    AnyTransformation,
    as_inner,
    GradientTransformationExtraArgs,
    OptState,
    Param,
    Params,
    transformation,
    Updates,
)
from ..engine import WrapperInfo, wrapping
from ..numerics import reshaped, sharded_like, sliced

# The blocks of a leaf, of shape (*stack, i, j, rows, columns); or up to four such
# arrays, if the last blocks are smaller.
Blocks = Array | tuple[Array, ...]


@transformation
def blocked(
    inner: AnyTransformation, size: int, *, axes: tuple[int, int] = (1, 1)
) -> GradientTransformationExtraArgs:
    """Apply `inner` to blocks of the matrices: each block is a matrix of its own.

    Both sides of a matrix are cut into pieces of `size`; the last piece may be shorter.
    An array of shape (*stack, m, n) becomes one of shape
    (*stack, m / size, n / size, size, size), whose first axes index matrices. If the
    last pieces are shorter, their blocks are separate arrays. Sides of at most `size`
    are not cut, and leaves with too few axes are unchanged.

    Preconditioners of a matrix of d x d take d^3 operations and d^2 numbers for each
    side. In blocks, the operations are `d / size` times fewer.

        blocked(scale_by_soap(), 256)

    `inner` sees leaves with more than two axes: use `scale_by_soap`, not `soap`, which
    would pass them to AdamW. For a whole optimizer in blocks, `soap`, `shampoo`,
    `soap_muon`, `splus` and `psgd` have an option `block_size`.

    Args:
        inner: any transformation; its state has the shapes of the blocks.
        size: the side of a block.
        axes: how many of the last axes of a leaf are the rows and the columns of its
            matrices. `inner` sees each of the two as one axis.

    >>> import jax.numpy as jnp, steepest
    >>> tx = steepest.blocked(steepest.scale_by_polar(), 4)
    >>> tx.init({"w": jnp.ones((8, 12))}).mu["w"].shape
    (2, 3, 4, 4)
    >>> [x.shape for x in tx.init({"w": jnp.ones((8, 10))}).mu["w"]]
    [(2, 2, 4, 4), (2, 1, 4, 2)]
    """
    tx = as_inner("blocked", "inner", inner)
    (size,) = check.period("blocked", size=size)
    rows, columns = _checked(axes)

    def all_blocks(params: Params) -> Params:
        return jax.tree.map(partial(_cut, size, rows, columns), params)

    def init(params: Params) -> OptState:
        return tx.init(all_blocks(params))

    def update(
        updates: Updates,
        state: OptState,
        params: Params | None = None,
        **extra_args: object,
    ) -> tuple[Updates, OptState]:
        blocks = None if params is None else all_blocks(params)
        u, state = tx.update(all_blocks(updates), state, blocks, **extra_args)
        together = partial(_together, size, rows, columns)
        return jax.tree.map(together, updates, u), state

    seen = partial(jax.eval_shape, all_blocks)
    return wrapping(init, update, WrapperInfo("blocked", tx, "", seen))


def _checked(axes: object) -> tuple[int, int]:
    if isinstance(axes, tuple | list) and len(axes) == 2:
        rows, columns = check.period("blocked", rows=axes[0], columns=axes[1])
        return rows, columns
    raise TypeError(
        f"blocked: axes is {axes!r}, expected two numbers: how many of the last axes "
        "are rows, and how many are columns."
    )


class _Piece(NamedTuple):
    """Pieces of one side of a matrix that are equally long."""

    start: int
    count: int
    length: int

    @property
    def span(self) -> slice:
        """Where they are."""
        return slice(self.start, self.start + self.count * self.length)


def _pieces(d: int, size: int) -> list[_Piece]:
    """A side of length `d` in pieces of `size`; the last may be shorter."""
    if d <= size:
        return [_Piece(0, 1, d)]
    count, rest = divmod(d, size)
    full = _Piece(0, count, size)
    return [full, _Piece(count * size, 1, rest)] if rest else [full]


def _matrices(x: Param, rows: int, columns: int) -> tuple[int, ...]:
    """The shape of a leaf as a stack of matrices."""
    first = x.ndim - rows - columns
    second = first + rows
    return *x.shape[:first], prod(x.shape[first:second]), prod(x.shape[second:])


def _cut(size: int, rows: int, columns: int, x: Param) -> Blocks | Param:
    """The blocks of a leaf: (*stack, m, n) -> (*stack, i, j, rows, columns)."""
    if x.ndim < rows + columns:
        return x
    if isinstance(x, jax.ShapeDtypeStruct):
        return jax.eval_shape(partial(_cut, size, rows, columns), x)
    *stack, m, n = _matrices(x, rows, columns)
    whole = reshaped(jnp.asarray(x), (*stack, m, n))
    if max(m, n) <= size or not x.size:
        return whole

    def blocks(r: _Piece, c: _Piece) -> Array:
        part = sliced(whole, (r.span, c.span))
        shape = *stack, r.count, r.length, c.count, c.length
        return reshaped(part, shape).swapaxes(-3, -2)

    all_blocks = [blocks(r, c) for r in _pieces(m, size) for c in _pieces(n, size)]
    return all_blocks[0] if len(all_blocks) == 1 else tuple(all_blocks)


def _together(size: int, rows: int, columns: int, x: Array, blocks: PyTree) -> Array:
    """The inverse of `_cut`, in the shape and with the sharding of `x`."""
    if x.ndim < rows + columns:
        return blocks
    shape = _matrices(x, rows, columns)
    if max(shape[-2:]) <= size or not x.size:
        return reshaped(blocks, x.shape, x)
    joined = lambda blocks: _joined(size, shape, blocks).reshape(x.shape)
    return sharded_like(x, joined, blocks)


def _joined(size: int, shape: tuple[int, ...], blocks: Blocks) -> Array:
    """The blocks as an array of shape (*stack, m, n)."""
    arrays = iter(blocks if isinstance(blocks, tuple) else (blocks,))
    *stack, m, n = shape

    def part(r: _Piece, c: _Piece) -> Array:
        shape = *stack, r.count * r.length, c.count * c.length
        return next(arrays).swapaxes(-3, -2).reshape(shape)

    bands = [
        jnp.concatenate([part(r, c) for c in _pieces(n, size)], axis=-1)
        for r in _pieces(m, size)
    ]
    return jnp.concatenate(bands, axis=-2)
