"""The polar factor of a long matrix, by products of small square ones.

Each step of Newton-Schulz multiplies a wide `x` from the left by a polynomial of
`x x^H`. These polynomials commute, so they can be multiplied with each other first, and
then with `x`. A tall `x` is multiplied from the right by polynomials of `x^H x`.

Dao AI Lab, Gram Newton-Schulz, 2026, github.com/Dao-AILab/gram-newton-schulz
"""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike

from ..core import Real
from ._polar import frobenius, Gram, Matrix, newton_schulz, Row, times
from ._polynomials import Polynomials
from ._symmetric import (
    symmetric_gram,
    symmetric_polynomial as polynomial,
    symmetric_product as product,
)

# Above this ratio `r` of the sides the Gram form needs fewer multiplications: with five
# steps `8 r + 28` against `20 r + 10`, in units of the shorter side cubed.
_SLIM = 1.5
_QUICK = {"gpu": jnp.dtype("float16"), "tpu": jnp.dtype("bfloat16")}
_AGAIN = 3  # steps between two updates of the Gram matrix; the first comes after 2


def orthogonal(
    x: Matrix,
    polynomials: Polynomials,
    *,
    dtype: DTypeLike | None = None,
    eps: Real = 1e-8,
) -> Matrix:
    """Approximate `U V^H`, where `x = U S V^H`, in the faster of two forms.

    Long matrices use the Gram form, except in bfloat16: its 8 bits are too few for a
    matrix of squares, and gave singular values of 2 instead of at most 1.1.

    Args:
        x: a matrix.
        polynomials: `(a, b, c)` for each step.
        dtype: the dtype of the steps; by default that of `x`. The norm of `x` is
            computed, and divided out, in the dtype of `x`, so nothing overflows or
            underflows. Ignored for complex matrices.
        eps: added to the norm of `x`; a matrix much smaller than `eps` stays small.
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


def quick_dtype(x: Matrix) -> np.dtype:
    """The default dtype of the steps: half precision where that is fast.

    On a GPU float16 is as fast as bfloat16 and eight times as precise, and a matrix of
    norm one cannot overflow. TPUs only have bfloat16; CPUs have neither. float64 stays
    float64.

    Args:
        x: a matrix.
    """
    if x.dtype != jnp.float32:
        return x.dtype
    return _QUICK.get(jax.default_backend(), x.dtype)


def gram_newton_schulz(x: Matrix, polynomials: Polynomials) -> Matrix:
    """Newton-Schulz steps on the Gram matrix, with few products with `x` itself.

        R = x x^H
        P = a I + b R + c R^2,   Q <- Q P,   R <- P R P,       for each step
        x <- Q x

    Rounding can make eigenvalues of `R` near zero negative, and each step amplifies
    them. So `x` and `R` are recomputed after two steps, and then after every three.

    Args:
        x: a matrix whose singular values are at most 1.
        polynomials: `(a, b, c)` for each step.
    """
    size, rest = _AGAIN - 1, list(polynomials)
    while rest:
        now, rest = rest[:size], rest[size:]
        x = times(_product(symmetric_gram(x), now), x)
        size = _AGAIN
    return x


def _product(gram: Gram, polynomials: Sequence[Row]) -> Gram:
    """The product of the factors of a few steps, from the Gram matrix alone."""
    p = whole = polynomial(gram, polynomials[0])
    for row in polynomials[1:]:
        gram = product(p, product(gram, p))
        p = polynomial(gram, row)
        whole = product(whole, p)
    return whole
