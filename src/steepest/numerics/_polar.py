"""The polar factor of one matrix, by matrix products alone.

Newton-Schulz: an odd polynomial, applied to the singular values repeatedly, until they
are all about one.

Bjorck and Bowie, An iterative algorithm for computing the best estimate of an
orthogonal matrix, 1971, doi:10.1137/0708036
Jordan et al., Muon, 2024, kellerjordan.github.io/posts/muon
Boissin et al., Turbo-Muon, 2025, arXiv:2512.04632 (preconditioning `aol`)
"""

from collections.abc import Callable, Sequence
from typing import TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Inexact

from ..core import Real
from ._half import promoted
from ._norms import root, sum_of_squares
from ._symmetric import symmetric_gram, symmetric_polynomial as polynomial
from ._xla import short_programs

Matrix: TypeAlias = Inexact[Array, "m n"]
Gram: TypeAlias = Inexact[Array, "k k"]
Row: TypeAlias = tuple[Real, Real, Real] | Inexact[Array, "3"]  # (a, b, c)


def polar(
    x: Matrix,
    coefficients: Float[Array, "3"] | Float[Array, "steps 3"],
    steps: int | np.integer | Array = 5,
    preconditioning: str = "frobenius",
    eps: Real = 1e-8,
) -> Matrix:
    """Approximate `U V^H`, where `x = U S V^H`: the steepest step of spectral norm one.

        x <- x / norm(x)
        x <- (a I + b A + c A^2) x       A = x x^H,       `steps` times

    Args:
        x: a matrix; a tall one is transposed first, so that `A` is small.
        coefficients: `(a, b, c)`, or one such row for each step.
        steps: number of steps; ignored if there is a row for each. May be traced.
        preconditioning: how to bring the singular values of `x` to at most one, a key
            of `PRECONDITIONINGS`.
        eps: keeps the division finite if `x` is zero.
    """
    if x.size == 0:
        return x
    if x.shape[0] > x.shape[1]:
        return polar(x.T, coefficients, steps, preconditioning, eps).T
    x, gram = PRECONDITIONINGS[preconditioning](x, eps)
    rows = coefficients.astype(promoted(x, jnp.float32))
    if rows.ndim == 2:
        return newton_schulz(x, list(rows), gram)
    if isinstance(steps, int | np.integer):
        if gram is not None or not short_programs():
            return newton_schulz(x, [rows] * int(steps), gram)
        steps = int(steps)
    return jax.lax.fori_loop(0, steps, lambda _, x: newton_schulz(x, [rows]), x)


def newton_schulz(x: Matrix, rows: Sequence[Row], gram: Gram | None = None) -> Matrix:
    """`x <- (a I + b A + c A^2) x` with `A = x x^H`, for each step.

    A tall matrix is multiplied from the right: `x (a I + b A + c A^2)`, `A = x^H x`.

    Args:
        x: a matrix whose singular values are at most 1.
        rows: `(a, b, c)` for each step.
        gram: `A` of the first step, if already known.
    """
    if gram is None and len(rows) > 1 and short_programs():
        table = jnp.asarray(rows, promoted(x, jnp.float32))
        step = lambda x, row: (times(polynomial(symmetric_gram(x), row), x), None)
        return jax.lax.scan(step, x, table)[0]
    for row in rows:
        gram = symmetric_gram(x) if gram is None else gram
        # One pass over a small matrix. Adding `a x` afterwards would be a pass over
        # `x`, and no more precise.
        x, gram = times(polynomial(gram, row), x), None
    return x


def times(a: Gram, x: Matrix) -> Matrix:
    """`a x` or `x a`, on the side that `symmetric_gram(x)` belongs to."""
    return x @ a if _is_tall(x) else a @ x


def _is_tall(x: Matrix) -> bool:
    return x.shape[0] > x.shape[1]


def _scaled(x: Matrix, eps: Real) -> tuple[Matrix, Array]:
    """`x` and `eps` over the largest element, so that squares stay in range."""
    top = _or_one(jax.lax.stop_gradient(jnp.max(jnp.abs(x))))
    return x / top.astype(x.dtype), eps / top


def _or_one(size: Float[Array, "..."]) -> Float[Array, "..."]:
    """`size`, or 1 where it is zero: the array it divides is then zero too."""
    # `jnp.where` would be a call, and Muon has five: 1% of the time to compile it.
    is_size = size > jnp.finfo(size.dtype).tiny
    return jax.lax.select(is_size, size, jax.lax.full_like(size, 1))


def _root(squares: Float[Array, "..."]) -> Float[Array, "..."]:
    """The root of a sum of squares; 1 where the sum is zero."""
    return root(_or_one(squares))


def frobenius(x: Matrix, eps: Real) -> tuple[Matrix, None]:
    """Divide by the Frobenius norm, `|S|_2`.

    Three sums in one pass, for small, ordinary and large numbers (Blue, A portable
    Fortran program to find the Euclidean norm of a vector, 1978,
    doi:10.1145/355769.355771): one of them neither overflows nor underflows.
    """
    if x.size == 1:
        # XLA would turn `(c x) (c x)` into `c^2 x^2`, and `c^2` is 0 or infinite.
        return x / (_or_one(jnp.abs(x)) + eps).astype(x.dtype), None
    far = 2.0 ** (5 * jnp.finfo(x.dtype).maxexp // 8)
    sums = [sum_of_squares(x * c) for c in (1, far, 1 / far)]
    is_small, is_large = sums[0] <= 1 / far, ~jnp.isfinite(sums[0])
    choose = jax.lax.select
    pick = lambda a, b, c: choose(is_small, b, choose(is_large, c, a))
    scale = pick(*map(jnp.asarray, (1.0, far, 1 / far)))
    size = _root(pick(*sums)) + eps * scale
    return x * scale.astype(x.dtype) / size.astype(x.dtype), None


def _spectral(x: Matrix, eps: Real) -> tuple[Matrix, None]:
    """Divide by the largest singular value, `|S|_inf`: exact, and the slowest."""
    x, eps = _scaled(x, eps)
    size = _or_one(jnp.max(jnp.linalg.svd(x, compute_uv=False)))
    return x / (size + eps).astype(x.dtype), None


def _schatten(x: Matrix, eps: Real) -> tuple[Matrix, Gram]:
    """Divide by `|S|_4`, the root of the norm of the Gram matrix, needed anyway."""
    x, eps = _scaled(x, jnp.sqrt(eps))
    gram = x @ x.conj().T
    size = jnp.maximum(root(_root(sum_of_squares(gram))), eps).astype(x.dtype)
    return x / size, gram / size**2


def _aol(x: Matrix, eps: Real) -> tuple[Matrix, Gram]:
    """Divide each row by its own bound (Gershgorin's, for the Gram matrix)."""
    x, eps = _scaled(x, jnp.sqrt(eps))
    gram = x @ x.conj().T
    sizes = _root(jnp.sum(jnp.abs(gram), axis=1, keepdims=True))
    sizes = jnp.maximum(sizes, eps).astype(x.dtype)
    return x / sizes, gram / (sizes * sizes.T)


PRECONDITIONINGS: dict[str, Callable[..., tuple[Matrix, Gram | None]]] = {
    "frobenius": frobenius,
    "spectral": _spectral,
    "aol": _aol,
    "schatten": _schatten,
}
