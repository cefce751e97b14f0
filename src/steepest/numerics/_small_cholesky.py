"""The inverse of a small Cholesky factor, in one kernel of a GPU.

The library's Cholesky factorization and triangular solve of 128 rows and columns take
0.21 ms on an H200: many launches for a chain of 128 small steps. In the kernel, one
program holds the matrix in its registers, and the chain is a loop: 0.10 ms.
"""

from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ._kernels import triton

Square: TypeAlias = Float[Array, "n n"]

SIDES = 64, 128  # of the matrices that the kernel takes
# With one or two, the registers do not suffice for a side of 128. Halves of 64 that are
# put together by products take ten times as long (JAX 0.11.2).
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
        result[...] = _eliminated(a[...])

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
        # Triton has no slices of registers: a sum with one term that is not zero.
        row = jnp.sum(jnp.where(rows == j, t, 0.0), axis=0)
        pivot = jnp.sum(jnp.where(index == j, row, 0.0))
        # What is left is symmetric, so the row is also the column.
        multiples = jnp.where(index > j, row, 0.0) / pivot
        row = jnp.where(index == j, 1.0, row)
        rest = jnp.where((columns == j) & (rows > j), 0.0, t)
        return rest - multiples[:, None] * row[None, :]

    t = jax.lax.fori_loop(0, n, step, a)
    pivots = jnp.sum(jnp.where(rows == columns, t, 0.0), axis=1)
    unit = jnp.where(rows == columns, 1.0, jnp.where(rows > columns, t, 0.0))
    return unit * jax.lax.rsqrt(pivots)[:, None]
