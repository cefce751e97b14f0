"""The inverse of a small Cholesky factor, in one kernel of a GPU.

The library's Cholesky factorization and triangular solve of 128 rows and columns take
0.21 ms on an H200: many launches for a chain of 128 small steps. In the kernel, one
program holds a block of 64 in its registers, and the chain is a loop: 0.043 ms. A block
of 128 at once takes 0.054 ms, and blocks of 32 take 0.068 ms.
"""

from collections.abc import Callable
from functools import partial, reduce
from operator import add
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ._kernels import triton

Square: TypeAlias = Float[Array, "n n"]

SIDES = 64, 128  # of the matrices that the kernel takes
_BLOCK = 64
_WARPS = 4  # with 2, a side of 128 takes 68 us instead of 43
_ROWS = 4  # eliminated in a step of the loop. One at a time takes 1.7 times as long.


def small_inverse_cholesky(a: Square, *, interpret: bool = False) -> Square:
    """`C^-1`, where `C C^T = a` and `C` is lower triangular, in one kernel.

    Args:
        a: symmetric and positive definite, in float32, with one of `SIDES`.
        interpret: whether to run without a GPU, for tests.
    """
    from jax.experimental import pallas as pl

    assert len(a) in SIDES and a.dtype == jnp.float32
    return pl.pallas_call(
        partial(_by_halves, interpret),
        out_shape=jax.ShapeDtypeStruct(a.shape, jnp.float32),
        compiler_params=triton().CompilerParams(num_warps=_WARPS, num_stages=1),
        interpret=interpret,
        name="small_inverse_cholesky",
    )(a)


def _by_halves(interpret: bool, a: Any, result: Any) -> None:
    """Write `C^-1`: in one block, or for halves of `a` and with products."""
    wait = (lambda: None) if interpret else triton().debug_barrier
    # In the kernel, three products on tensor cores: with one in float32 instead, a side
    # of 128 takes 92 us.
    way = jax.lax.DotAlgorithmPreset.TF32_TF32_F32_X3
    times = partial(jnp.dot, precision=jax.lax.Precision.HIGHEST if interpret else way)

    def invert(source: Any, rows: slice) -> None:
        """Write the inverse for the block of these rows and columns.

        What other threads write to `result` is read after a barrier.
        """
        n = rows.stop - rows.start
        if n <= _BLOCK:
            _eliminate(source[rows, rows], partial(_write, result, rows))
            wait()
            return
        middle = rows.start + n // 2
        first, last = slice(rows.start, middle), slice(middle, rows.stop)
        invert(source, first)
        top = result[first, first]
        corner = times(source[last, first], top.T)
        result[last, last] = source[last, last] - times(corner, corner.T)
        wait()
        invert(result, last)
        result[last, first] = -times(result[last, last], times(corner, top))
        result[first, last] = jnp.zeros((n // 2, n // 2), jnp.float32)

    invert(a, slice(0, len(a)))


def _write(result: Any, rows: slice, k: Array, row: Array) -> None:
    result[rows.start + k, rows] = row


def _eliminate(a: Square, write: Callable[[Array, Array], None]) -> None:
    """Write `C^-1` by elimination, a few rows at a time.

    In step `j`, multiples of these rows make their columns zero in all rows below, and
    the same multiples of the identity take the place of these columns. So when the turn
    of a row comes, it is a row of the inverse of `C`, but for what the rows of the same
    step do to each other.

    Args:
        a: symmetric and positive definite.
        write: called with the index of each row, and the row.
    """
    n, size = len(a), _ROWS
    shape = blocks, *_ = n // size, size, n
    iota = jax.lax.broadcasted_iota
    block, column = (iota(jnp.int32, shape, k) for k in (0, 2))
    part = iota(jnp.int32, (size, n), 0)
    index = iota(jnp.int32, (n,), 0)

    def step(j: Array, t: Array) -> Array:
        # Triton has no slices of registers: a sum with one term that is not zero.
        some = jnp.sum(jnp.where(block == j, t, 0.0), axis=0)
        rows = [jnp.sum(jnp.where(part == k, some, 0.0), axis=0) for k in range(size)]
        at = lambda row, k: jnp.sum(jnp.where(index == j * size + k, row, 0.0))
        corner = [[at(row, k) for k in range(i + 1)] for i, row in enumerate(rows)]
        ones = [jnp.where(index == j * size + k, 1.0, 0.0) for k in range(size)]
        here = (index >= j * size) & (index < (j + 1) * size)
        rows = [jnp.where(here, *pair) for pair in zip(ones, rows, strict=True)]
        done = [
            reduce(add, (w * row for w, row in zip(ws, rows, strict=False)))
            for ws in _inverse_factor(corner)
        ]
        t = jnp.where((column >= j * size) & (column < (j + 1) * size), 0.0, t)
        for k, row in enumerate(done):
            write(j * size + k, jnp.where(index <= j * size + k, row, 0.0))
            # What is left is symmetric, so the row is also the column.
            multiples = jnp.where(index >= (j + 1) * size, row, 0.0)
            t -= multiples.reshape(blocks, size)[:, :, None] * row[None, None, :]
        return t

    jax.lax.fori_loop(0, blocks, step, a.reshape(shape))


def _inverse_factor(a: list[list[Array]]) -> list[list[Array]]:
    """The rows of `C^-1` up to the diagonal, where `C C^T = a`, number by number."""
    c: list[list[Array]] = []
    inverse: list[list[Array]] = []
    for row in a:
        left: list[Array] = []
        for k, x in enumerate(row[:-1]):
            x -= sum(y * z for y, z in zip(left, c[k], strict=False))
            left.append(x * inverse[k][k])
        one = jax.lax.rsqrt(row[-1] - sum(x * x for x in left))
        some = [
            -one * sum(left[i] * inverse[i][k] for i in range(k, len(left)))
            for k in range(len(left))
        ]
        c.append(left)
        inverse.append([*some, one])
    return inverse
