"""Least squares with non-negative solutions, by accelerated projected gradients.

Beck and Teboulle, A fast iterative shrinkage-thresholding algorithm for linear inverse
problems, 2009
"""

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from .. import check
from ._half import at_least_float32, promoted
from ._lengths import length


def nnls(
    A: object,
    b: object,
    iters: int | float,
    unroll: int | bool = 1,
    L: ArrayLike | None = None,
) -> Float[Array, "..."]:
    """Approximate the `x >= 0` that minimizes `|A x - b|`.

        x' = max(y - (A^T A y - A^T b) / L, 0)
        t' = (1 + sqrt(1 + 4 t^2)) / 2
        y' = x' + (t - 1) / t' (x' - x)                 x = y = 0 and t = 0 at first

    Args:
        A: a matrix, `m x n`.
        b: a vector of length `m`, or `m x k` for `k` problems at once.
        iters: number of steps, at least 0.
        unroll: number of steps in one iteration of the compiled loop.
        L: an upper bound of the largest eigenvalue of `A^T A`; by default the Frobenius
            norm of `A^T A`.

    Returns:
        `x`, a vector of length `n`, or `n x k`.

    >>> import jax.numpy as jnp
    >>> [round(float(x), 3) for x in nnls(jnp.eye(2), jnp.array([3.0, -1.0]), 100)]
    [3.0, 0.0]
    """
    A, b = check.array("nnls", A=A, b=b)
    if A.ndim != 2 or b.ndim not in (1, 2) or A.shape[0] != b.shape[0]:
        raise ValueError(
            f"nnls: A has shape {A.shape} and b has shape {b.shape}, expected shapes "
            "(m, n) and (m,) or (m, k). Map over several problems with `jax.vmap`."
        )
    if jnp.iscomplexobj(A) or jnp.iscomplexobj(b):
        raise ValueError(
            f"nnls: A has dtype {A.dtype} and b has dtype {b.dtype}, expected real "
            "numbers."
        )
    check.amount.must("nnls", iters=iters, unroll=unroll)
    if L is not None:
        check.positive.must("nnls", L=L)
    dtype = promoted(A, b, 1.0)
    wide = at_least_float32(jnp.zeros((), dtype)).dtype
    A, b = A.astype(wide), b.astype(wide)
    gram, target = A.T @ A, A.T @ b
    bound = length(gram) if L is None else jnp.asarray(L).astype(wide)
    bound = jnp.where(bound == 0, 1, bound)  # A is zero, and x stays zero

    def step(
        state: tuple[Array, Array, Array], _: None
    ) -> tuple[tuple[Array, Array, Array], None]:
        x, y, t = state
        new_x = jnp.maximum(y - (gram @ y - target) / bound, 0)
        new_t = (1 + jnp.sqrt(1 + 4 * t * t)) / 2
        y = new_x + (t - 1) / new_t * (new_x - x)
        return (new_x, y, new_t), None

    x = jnp.zeros_like(target)
    start = (x, x, jnp.zeros((), wide))
    (x, _, _), _ = jax.lax.scan(step, start, length=max(int(iters), 0), unroll=unroll)
    return x.astype(dtype)
