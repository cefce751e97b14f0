"""Stochastic rounding: changes below the precision are kept on average.

Gupta, Agrawal, Gopalakrishnan and Narayanan, Deep learning with limited numerical
precision, 2015, arXiv:1502.02551
"""

import jax
import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array, Float

from ._dither import dither, seeds
from ._split import at_random, is_half, with_bits


def rounded(
    x: Float[Array, "..."], dtype: DTypeLike, key: Array
) -> Float[Array, "..."]:
    """Round `x` to one of its two neighbours in a narrower dtype, with mean `x`.

        P(far) = |x - near| / |far - near|          near, far: the neighbours of x

    A finite number stays finite. The random bits of an element depend on its index in
    the whole array, so sharding changes nothing.

    Args:
        x: the numbers.
        dtype: a dtype with lower precision.
        key: a random key.

    >>> import jax, jax.numpy as jnp
    >>> x = jnp.full(1000, 1.001)                   # bfloat16 has 1 and 1.0078125
    >>> up = rounded(x, jnp.bfloat16, jax.random.key(0)) > 1
    >>> bool(abs(jnp.mean(up.astype(float)) - 0.001 / 0.0078125) < 0.05)
    True
    """
    if is_half(dtype):
        noise = dither(seeds(key, 1)[0], x, jnp.uint16)
        return with_bits(at_random(x.astype(jnp.float32), dtype, noise), dtype)
    near = x.astype(dtype)
    rest = x - near.astype(x.dtype)
    towards = jnp.where(rest > 0, jnp.inf, -jnp.inf).astype(dtype)
    far = jnp.nextafter(near, towards)
    gap = jnp.abs(far.astype(x.dtype) - near.astype(x.dtype))
    where = jax.typeof(x).sharding
    chance = jax.random.uniform(key, x.shape, x.dtype, out_sharding=where)
    # The largest number has no neighbour above it, and infinity has none at all.
    go = (chance * gap < jnp.abs(rest)) & jnp.isfinite(far) & jnp.isfinite(rest)
    return jnp.where(go, far, near)
