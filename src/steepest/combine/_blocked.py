"""Cut large matrices into blocks, for transformations that are expensive for them.

Gupta, Koren and Singer, Shampoo: preconditioned stochastic tensor optimization, 2018,
arXiv:1802.09568
"""

from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array

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


@transformation
def blocked(inner: AnyTransformation, size: int) -> GradientTransformationExtraArgs:
    """Apply `inner` to blocks of the matrices: each block is a matrix of its own.

    The last two axes of a leaf are cut into pieces of `size`; the last piece is padded
    with zeros. An array of shape (*stack, m, n) becomes one of shape
    (*stack, m / size, n / size, size, size), whose first axes index matrices. Sides of
    at most `size` are not cut, and leaves with fewer than two axes are unchanged.

    Preconditioners of a matrix of d x d take d^3 operations and d^2 numbers for each
    side. In blocks, the operations are `d / size` times fewer.

        blocked(scale_by_soap(), 256)

    `inner` sees leaves with more than two axes: use `scale_by_soap`, not `soap`, which
    would pass them to AdamW. It also sees the zeros, which count in norms and means.

    Args:
        inner: any transformation; its state has the shapes of the blocks.
        size: the side of a block.

    >>> import jax.numpy as jnp, steepest
    >>> tx = steepest.blocked(steepest.scale_by_polar(), 4)
    >>> tx.init({"w": jnp.ones((8, 10))}).mu["w"].shape
    (2, 3, 4, 4)
    """
    tx = as_inner("blocked", "inner", inner)
    (size,) = check.period("blocked", size=size)
    cut = partial(_cut, size)

    def all_blocks(params: Params) -> Params:
        return jax.tree.map(cut, params)

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
        return jax.tree.map(_together, updates, u), state

    seen = partial(jax.eval_shape, all_blocks)
    return wrapping(init, update, WrapperInfo("blocked", tx, "", seen))


def _cut(size: int, x: Param) -> Array | Param:
    """The blocks of a leaf: (*stack, m, n) -> (*stack, i, j, rows, columns)."""
    if x.ndim < 2 or max(x.shape[-2:]) <= size or not x.size:
        return x
    if isinstance(x, jax.ShapeDtypeStruct):
        return jax.eval_shape(partial(_cut, size), x)
    *stack, m, n = jnp.shape(x)
    rows, columns = min(size, m), min(size, n)
    ends = [(0, 0)] * len(stack) + [(0, -m % rows), (0, -n % columns)]
    padded = jnp.pad(jnp.asarray(x), ends)
    i, j = padded.shape[-2] // rows, padded.shape[-1] // columns
    return padded.reshape(*stack, i, rows, j, columns).swapaxes(-3, -2)


def _together(x: Param, blocks: Array) -> Array:
    """The inverse of `_cut`, in the shape of `x`."""
    if blocks.shape == x.shape:
        return blocks
    *stack, m, n = jnp.shape(x)
    i, j, rows, columns = blocks.shape[-4:]
    whole = blocks.swapaxes(-3, -2).reshape(*stack, i * rows, j * columns)
    return whole[..., :m, :n]
