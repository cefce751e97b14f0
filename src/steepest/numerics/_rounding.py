"""Rounding by chance, so that what is too small to be seen is not lost on average.

Gupta, Agrawal, Gopalakrishnan and Narayanan, Deep learning with limited numerical
precision, 2015, arXiv:1502.02551
"""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float


def rounded(x: Float[Array, "..."], dtype: Any, key: Array) -> Float[Array, "..."]:
    """`x` in a narrower dtype: one of its two neighbours there, with mean `x`.

        P(far) = |x - near| / |far - near|          near, far: the neighbours of x

    Args:
        x: the numbers.
        dtype: a dtype that has fewer digits.
        key: a random key.

    >>> x = jnp.full(1000, 1.001)                   # bfloat16 has 1 and 1.0078125
    >>> up = rounded(x, jnp.bfloat16, jax.random.key(0)) > 1
    >>> bool(abs(jnp.mean(up.astype(float)) - 0.001 / 0.0078125) < 0.05)
    True
    """
    near = x.astype(dtype)
    rest = x - near.astype(x.dtype)
    towards = jnp.where(rest > 0, jnp.inf, -jnp.inf).astype(dtype)
    far = jnp.nextafter(near, towards)
    gap = jnp.abs(far.astype(x.dtype) - near.astype(x.dtype))
    chance = jax.random.uniform(key, x.shape, x.dtype)
    # Beyond the last number there is no neighbour, and infinity has none.
    go = (chance * gap < jnp.abs(rest)) & jnp.isfinite(far) & jnp.isfinite(rest)
    return jnp.where(go, far, near)
