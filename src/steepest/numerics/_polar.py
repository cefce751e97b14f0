"""The polar factor of one matrix, by matrix products alone.

Newton-Schulz: an odd polynomial, applied to the singular values again and again, until
they are all about one.

Bjorck and Bowie, An iterative algorithm for computing the best estimate of an
orthogonal matrix, 1971, doi:10.1137/0708036
Jordan et al., Muon, 2024, kellerjordan.github.io/posts/muon (coefficients `standard`)
Ahn et al., Dion, 2025, arXiv:2504.05295 (coefficients `dion`)
Boissin et al., Turbo-Muon, 2025, arXiv:2512.04632 (preconditioning `aol`)
"""

from collections.abc import Callable
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Inexact

from ..core import Real
from ._norms import root, sum_of_squares

Matrix: TypeAlias = Inexact[Array, "m n"]
Gram: TypeAlias = Inexact[Array, "m m"]

# name -> (a, b, c), the same in every step, or one such triple for each
COEFFICIENTS = {
    "standard": (3.4445, -4.7750, 2.0315),
    "dion": (
        (4.0848, -6.8946, 2.9270),
        (3.9505, -6.3029, 2.6377),
        (3.7418, -5.5913, 2.3037),
        (2.8769, -3.1427, 1.2046),
        (2.8366, -3.0525, 1.2012),
    ),
}


def polar(
    x: Matrix,
    coefficients: Float[Array, "3"] | Float[Array, "k 3"],
    steps: Any = 5,
    preconditioning: str = "frobenius",
    eps: Real = 1e-8,
) -> Matrix:
    """About `U V^H`, where `x = U S V^H`: the steepest step of spectral length one.

        x <- x / size(x)
        x <- a x + (b A + c A^2) x       A = x x^H,       `steps` times

    Args:
        x: a matrix; a tall one is turned on its side, so that `A` is small.
        coefficients: `(a, b, c)`, or one such row for each step.
        steps: how many steps; not used where there is a row for each. May be traced.
        preconditioning: a name in `PRECONDITIONINGS`: how `x` is made to have singular
            values of at most one.
        eps: keeps the division finite where `x` is zero.
    """
    if x.size == 0:
        return x
    if x.shape[0] > x.shape[1]:
        return polar(x.T, coefficients, steps, preconditioning, eps).T
    x, gram = PRECONDITIONINGS[preconditioning](x, eps)
    rows = coefficients.astype(x.dtype)
    if rows.ndim == 2:
        each = list(rows)
    elif isinstance(steps, int | np.integer):
        each = [rows] * int(steps)
    else:
        return jax.lax.fori_loop(0, steps, lambda _, x: _step(x, rows), x)
    for row in each:
        x, gram = _step(x, row, gram), None
    return x


def _step(x: Matrix, row: Array, gram: Gram | None = None) -> Matrix:
    """One step; `gram` if `x x^H` is known already."""
    a, b, c = row
    if gram is None:
        gram = x @ x.conj().T
    return a * x + (b * gram + c * gram @ gram) @ x


def _scaled(x: Matrix, eps: Real) -> tuple[Matrix, Any]:
    """`x` and `eps` over the largest element: squares neither overflow nor vanish."""
    top = _or_one(jax.lax.stop_gradient(jnp.max(jnp.abs(x))))
    return x / top.astype(x.dtype), eps / top


def _or_one(size: Float[Array, "..."]) -> Float[Array, "..."]:
    """`size`, and 1 where that is zero: what is divided by it is zero, too."""
    return jnp.where(size > jnp.finfo(size.dtype).tiny, size, 1)


def _root(squares: Float[Array, "..."]) -> Float[Array, "..."]:
    """The root of a sum of squares; 1 for none, as above."""
    return root(_or_one(squares))


def _frobenius(x: Matrix, eps: Real) -> tuple[Matrix, None]:
    """Over the root of the sum of squares, `|S|_2`."""
    x, eps = _scaled(x, eps)
    return x / (_root(sum_of_squares(x)) + eps).astype(x.dtype), None


def _spectral(x: Matrix, eps: Real) -> tuple[Matrix, None]:
    """Over the largest singular value, `|S|_inf`: exact, and the dearest."""
    x, eps = _scaled(x, eps)
    size = _or_one(jnp.max(jnp.linalg.svd(x, compute_uv=False)))
    return x / (size + eps).astype(x.dtype), None


def _schatten(x: Matrix, eps: Real) -> tuple[Matrix, Gram]:
    """Over `|S|_4`, the root of the size of the Gram matrix, which is needed anyway."""
    x, eps = _scaled(x, jnp.sqrt(eps))
    gram = x @ x.conj().T
    size = jnp.maximum(root(_root(sum_of_squares(gram))), eps).astype(x.dtype)
    return x / size, gram / size**2


def _aol(x: Matrix, eps: Real) -> tuple[Matrix, Gram]:
    """Each row over a bound of its own (Gershgorin's, for the Gram matrix)."""
    x, eps = _scaled(x, jnp.sqrt(eps))
    gram = x @ x.conj().T
    sizes = _root(jnp.sum(jnp.abs(gram), axis=1, keepdims=True))
    sizes = jnp.maximum(sizes, eps).astype(x.dtype)
    return x / sizes, gram / (sizes * sizes.T)


PRECONDITIONINGS: dict[str, Callable[..., Any]] = {
    "frobenius": _frobenius,
    "spectral": _spectral,
    "aol": _aol,
    "schatten": _schatten,
}
