"""The polar factor of a long matrix, by products of small square ones.

The steps of Newton-Schulz multiply a wide `x` from the left by polynomials of `x x^H`.
These commute: so they can be multiplied with each other first, and `x` with the result.
A tall one is multiplied from the right, by polynomials of `x^H x`.

Dao AI Lab, Gram Newton-Schulz, 2026, github.com/Dao-AILab/gram-newton-schulz
"""

from typing import Any

import jax
import jax.numpy as jnp

from ..core import Real
from ._polar import factor, frobenius, Gram, gram_of, Matrix, newton_schulz, times
from ._polynomials import Polynomials

# The ratio of the sides from which on the Gram form has fewer products: with five steps
# `8 r + 28` against `20 r + 10`, in units of the shorter side's cube.
_SLIM = 1.5
_QUICK = {"gpu": jnp.dtype("float16"), "tpu": jnp.dtype("bfloat16")}
_AGAIN = 3  # steps after which the Gram matrix is made anew; the first time after 2


def orthogonal(
    x: Matrix, polynomials: Polynomials, *, dtype: Any = None, eps: Real = 1e-8
) -> Matrix:
    """About `U V^H`, where `x = U S V^H`: `polar`, in the form that is faster.

    Long matrices take the Gram form. Not in bfloat16: its 8 bits are too few for a
    matrix of squares, and singular values of 2 were seen where 1.1 was promised.

    Args:
        x: a matrix.
        polynomials: `(a, b, c)` for each step.
        dtype: what to compute the steps in; by default the dtype of `x`. The size of
            `x` is found, and undone, in its own dtype: no number is too large or too
            small. Complex matrices are computed as they are.
        eps: added to the size of `x`; what is much smaller stays small.
    """
    if x.size == 0:
        return x
    y, _ = frobenius(x, eps)
    if dtype is not None and jnp.isrealobj(x):
        y = y.astype(dtype)
    short, long = sorted(x.shape)
    slim = long > _SLIM * short and y.dtype != jnp.bfloat16
    run = gram_newton_schulz if slim else newton_schulz
    return run(y, polynomials).astype(x.dtype)


def quick_dtype(x: Matrix) -> Any:
    """What to compute the steps in, where nobody says: half precision if that is quick.

    In float16 they are as fast as in bfloat16 on a GPU, and eight times as exact; what
    is divided by its size cannot overflow. A TPU has bfloat16 alone, and a CPU neither.
    Whoever uses float64 wants all its digits.

    Args:
        x: a matrix.
    """
    if x.dtype != jnp.float32:
        return x.dtype
    return _QUICK.get(jax.default_backend(), x.dtype)


def gram_newton_schulz(x: Matrix, polynomials: Polynomials) -> Matrix:
    """Steps of Newton-Schulz; `x` itself is touched as rarely as can be.

        R = x x^H
        P = a I + b R + c R^2,   Q <- Q P,   R <- P R P,       for each step
        x <- Q x

    Rounding makes eigenvalues of `R` negative that were about zero, and each step makes
    them larger. So `x` and `R` are brought up to date after two steps, and then after
    every three.

    Args:
        x: a matrix whose singular values are at most 1.
        polynomials: `(a, b, c)` for each step.
    """
    size, rest = _AGAIN - 1, list(polynomials)
    while rest:
        now, rest = rest[:size], rest[size:]
        x = times(_product(gram_of(x), now), x)
        size = _AGAIN
    return x


def _product(gram: Gram, polynomials: list[Any]) -> Gram:
    """The product of the factors of a few steps, of a Gram matrix alone."""
    p = product = factor(gram, polynomials[0])
    for row in polynomials[1:]:
        gram = p @ (gram @ p)
        p = factor(gram, row)
        product = product @ p
    return product
