"""Random bits for rounding, from a hash of the index of each element.

The finalizer of MurmurHash3, by Austin Appleby, with a seed. It takes a dozen
operations for each hash, and threefry, the usual generator of `jax.random`, over a
hundred. Rounding needs only uniform bits that differ from step to step. Four neighbours
that need 8 bits each share a hash.
"""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import Array, Float, UInt, UInt32

from ._sharding import sharded_like


def dither(
    seed: UInt32[Array, "2"], like: Array, dtype: DTypeLike
) -> UInt[Array, "..."]:
    """Random bits with the shape of an array.

    They depend on the seed and on the index in the whole array: sharding changes
    nothing. Inside `jax.shard_map` all devices get the same bits for their shards.

    Args:
        seed: 64 random bits, new ones for each leaf and step.
        like: an array of the wanted shape and sharding.
        dtype: uint8, uint16 or uint32.
    """
    return sharded_like(like, lambda seed: _of_shape(seed, like.shape, dtype), seed)


def seeds(key: Array, count: int) -> UInt32[Array, "n 2"]:
    """Seeds for `count` leaves.

    Args:
        key: a random key.
        count: how many.
    """
    return jax.random.bits(key, (count, 2), jnp.uint32)


def chance_of(z: Float[Array, "..."]) -> Float[Array, "..."]:
    """Numbers that look random, between 1e-5 and 1 - 1e-5, from the bits of others.

    They need no key. For an average that changes in every step they are new each time.
    The last 12 bits of float32 are not used, since they depend on how XLA rounds.

    Args:
        z: any numbers. Equal ones have equal results.
    """
    x = jax.lax.bitcast_convert_type(z.astype(jnp.float32), jnp.uint32) >> 12
    x = (x ^ (x >> 16)) * np.uint32(0x85EBCA6B)
    x = (x ^ (x >> 13)) * np.uint32(0xC2B2AE35)
    x = ((x ^ (x >> 16)) >> 8).astype(z.dtype)
    return jnp.clip(x * 2.0**-24, 1e-5, 1 - 1e-5)


def hashed(
    seed: Sequence[UInt32[Array, ""]],
    start: UInt32[Array, "..."],
    place: UInt32[Array, "..."],
    dtype: DTypeLike,
) -> UInt[Array, "..."]:
    """Random bits for elements that are numbered. A hash of 32 bits serves several.

    Args:
        seed: two numbers of 32 random bits.
        start: the number of a hash.
        place: counts elements from there on, as many for each hash as fit into it.
        dtype: uint8, uint16 or uint32.
    """
    bits = jnp.iinfo(dtype).bits
    each = np.uint32(32 // bits)
    x = start + place // each + seed[0]
    x = (x ^ (x >> 16)) * np.uint32(0x85EBCA6B)
    x = (x ^ (x >> 13)) * np.uint32(0xC2B2AE35)
    # The second half of the seed: else another step would have the same bits, shifted.
    x = ((x ^ (x >> 16)) + seed[1]) * np.uint32(0x9E3779B1)
    x = x ^ (x >> 15)
    return (x >> (place % each * np.uint32(bits))).astype(dtype)


def hashes_of_row(length: int, dtype: DTypeLike) -> int:
    """The number of hashes for a row of this length: rows do not share any."""
    return -(-length * jnp.iinfo(dtype).bits // 32)


def _of_shape(
    seed: UInt32[Array, "2"], shape: tuple[int, ...], dtype: DTypeLike
) -> UInt[Array, "..."]:
    if not shape:
        return _of_shape(seed, (1,), dtype)[0]
    start = jnp.zeros(shape, jnp.uint32)
    stride = hashes_of_row(shape[-1], dtype)
    for axis in reversed(range(len(shape) - 1)):
        index = jax.lax.broadcasted_iota(jnp.uint32, shape, axis)
        start = start + index * np.uint32(stride % (1 << 32))
        stride *= shape[axis]
    place = jax.lax.broadcasted_iota(jnp.uint32, shape, len(shape) - 1)
    return hashed((seed[0], seed[1]), start, place, dtype)
