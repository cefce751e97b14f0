"""The inverse of a small Cholesky factor, in one kernel of a GPU.

The library's Cholesky factorization and triangular solve of 128 rows and columns take
0.21 ms on an H200, many launches for a chain of 128 small steps. In the kernel, one
program holds the matrix in its registers, and the chain is a loop.
"""

from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ._kernels import triton

Square: TypeAlias = Float[Array, "n n"]

SMALL = 64  # rows that one loop eliminates
SIDES = SMALL, 2 * SMALL  # of the matrices that the kernel takes
_WARPS = 4


def small_inverse_cholesky(a: Square, *, interpret: bool = False) -> Square:
    """`C^-1`, where `C C^T = a` and `C` is lower triangular, in one kernel.

    Args:
        a: symmetric and positive definite, in float32, with one of `SIDES`.
        interpret: whether to run without a GPU, for tests.
    """
    from jax.experimental import pallas as pl

    n = len(a)
    assert n in SIDES and a.dtype == jnp.float32

    def kernel(a: Any, result: Any) -> None:
        if n == SMALL:
            result[...] = _eliminated(a[...])
            return
        one, two = pl.ds(0, SMALL), pl.ds(SMALL, SMALL)
        top = _eliminated(a[one, one])
        corner = _dot(a[two, one], top.T)
        bottom = _eliminated(a[two, two] - _dot(corner, corner.T))
        result[one, one] = top
        result[one, two] = jnp.zeros((SMALL, SMALL), jnp.float32)
        result[two, one] = -_dot(bottom, _dot(corner, top))
        result[two, two] = bottom

    return pl.pallas_call(
        kernel,
        out_shape=jax.ShapeDtypeStruct((n, n), jnp.float32),
        compiler_params=triton().CompilerParams(num_warps=_WARPS, num_stages=1),
        interpret=interpret,
        name="small_inverse_cholesky",
    )(a)


def _eliminated(a: Square) -> Square:
    """`C^-1` by elimination, in place.

    In step `j`, multiples of row `j` make column `j` zero below the diagonal, and the
    same multiples of the identity take its place. Rows above `j` are those of the
    inverse of `C`, but for a factor.
    """
    n = len(a)
    rows, columns = (jax.lax.broadcasted_iota(jnp.int32, (n, n), k) for k in (0, 1))
    index = jax.lax.broadcasted_iota(jnp.int32, (n,), 0)

    def step(j: Array, t: Array) -> Array:
        # Triton has no slices of registers: sums with one term that is not zero.
        row = jnp.sum(jnp.where(rows == j, t, 0.0), axis=0)
        column = jnp.sum(jnp.where(columns == j, t, 0.0), axis=1)
        pivot = jnp.sum(jnp.where((rows == j) & (columns == j), t, 0.0))
        multiples = jnp.where(index > j, column, 0.0) / pivot
        # With one more at `j`, column `j` becomes minus the multiples, not zero.
        row = jnp.where(index == j, row + 1.0, row)
        return t - multiples[:, None] * row[None, :]

    t = jax.lax.fori_loop(0, n, step, a)
    pivots = jnp.sum(jnp.where(rows == columns, t, 0.0), axis=1)
    unit = jnp.where(rows == columns, 1.0, jnp.where(rows > columns, t, 0.0))
    return unit * jax.lax.rsqrt(pivots)[:, None]


def _dot(x: Array, y: Array) -> Array:
    return triton().dot(x, y, precision=jax.lax.Precision.HIGHEST)
