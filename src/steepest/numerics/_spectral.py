"""The spectral norm of a matrix, roughly, and rotations that make a matrix symmetric.

Both consist of matrix products, so they run on whole stacks.
"""

from typing import TypeAlias

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ._matmul import exact_product as times

Square: TypeAlias = Float[Array, "d d"]

_PROBES, _STEPS = 32, 4


def spectral_norm(a: Square) -> Float[Array, ""]:
    """About the largest singular value: a lower bound, by the power method.

    It starts at several vectors: the largest row of `a`, plus or minus fixed signs. A
    few large elements of a row can hide a larger eigenvalue from the row alone.

    Args:
        a: symmetric or antisymmetric.
    """
    return _power_method(a)


def _power_method(a: Square) -> Float[Array, ""]:
    largest = jnp.max(jnp.abs(a), initial=0.0)
    tiny = jnp.finfo(a.dtype).tiny
    a = a / jnp.maximum(largest, tiny)
    row = a[jnp.argmax(jnp.sum(a * a, axis=1))][None]
    signs = jax.random.rademacher(jax.random.key(0), (_PROBES, len(a)), a.dtype)
    # The sign of each probe is such that it does not cancel the row.
    sides = jnp.where(jnp.sum(signs * row, axis=1, keepdims=True) < 0, -1, 1)
    x = row + sides * signs
    for _ in range(_STEPS):
        x = x / jnp.maximum(_lengths(x), tiny)
        x = x @ a
    return largest * jnp.max(_lengths(x))


def more_symmetric(q: Square, longest: float = 1 / 8) -> Square:
    """Rotate `q` from the left, so that it comes closer to a symmetric matrix.

        q <- (I + a R + a^2 R^2 / 2) q             R = (q^T - q) / |q^T - q|_2

    The factor is a rotation up to the third power of `a`, so `q^T q` hardly changes.

    Args:
        q: a matrix, best with positive eigenvalues.
        longest: the largest `a`. It is less where a smaller one is optimal.
    """
    r = q.T - q
    r = r / jnp.maximum(spectral_norm(r), jnp.finfo(q.dtype).tiny)
    once = times(r, q)
    twice = times(r, once)
    slope, curvature = jnp.trace(once), jnp.trace(twice)
    best = -slope / jnp.where(curvature < 0, curvature, -1)
    a = jnp.where(curvature < 0, jnp.minimum(best, longest), longest)
    return q + a * (once + a / 2 * twice)


def _lengths(x: Float[Array, "k d"]) -> Float[Array, "k 1"]:
    return jnp.sqrt(jnp.sum(x * x, axis=1, keepdims=True))
