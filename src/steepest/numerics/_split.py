"""A float32 number as a half-precision number and a small integer.

The upper 16 bits of a float32 are a bfloat16. So a float32 is the nearest bfloat16 plus
a correction, and the correction is an int16: the difference of their bits. Together
they take 4 bytes, and nothing is lost. An int8 holds the upper half of the correction:
that makes a number of 24 bits, with 15 bits of mantissa.

Below, `extended` bits are those of a half-precision number, and 16 more. For bfloat16
they are the bits of the float32. For float16 they are not, but the same integer
arithmetic works on them: a neighbour is one more or one less.

Everything is computed with integers. XLA may replace float32 -> bfloat16 -> float32 by
nothing (`xla_allow_excess_precision`), and the correction would be zero.

Zamirai, Zhang, Aberger and De Sa, Revisiting bfloat16 training, 2020, arXiv:2010.06192
Ortiz, Gupta, Rando and Frankle, FlashOptim, 2026, arXiv:2602.23349 (24-bit weights)
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax.lax import bitcast_convert_type
from jax.typing import DTypeLike
from jaxtyping import Array, Float, Int, UInt

_SIGN, _MAGNITUDE = np.uint32(0x80000000), np.uint32(0x7FFFFFFF)  # of 32 bits
# The bits of 2^-14, float16's least number with full precision.
_EXACT_ABOVE = 113 << 23
_FAR = 1 << 20  # more than any correction


class _Half(NamedTuple):
    """The bits of special numbers of a half-precision dtype."""

    infinity: int
    nan: int

    @property
    def limit(self) -> int:
        """The largest extended bits that are rounded to a finite number."""
        return (self.infinity << 16) - 0x8001


_HALVES = {
    jnp.dtype(jnp.bfloat16): _Half(0x7F80, 0x7FC0),
    jnp.dtype(jnp.float16): _Half(0x7C00, 0x7E00),
}


def is_half(dtype: DTypeLike) -> bool:
    """Whether a dtype is bfloat16 or float16."""
    floating = jnp.issubdtype(dtype, jnp.floating)  # not the dtype of a random key
    return floating and jnp.dtype(dtype) in _HALVES


def correction_dtype(bits: int) -> jnp.dtype:
    """The dtype of a correction of 8 or 16 bits."""
    return jnp.dtype(f"int{bits}")


def joined(
    p: Float[Array, "..."], correction: Int[Array, "..."]
) -> Float[Array, "..."]:
    """The float32 numbers that `p` and its correction stand for.

    Args:
        p: numbers in half precision.
        correction: int16 or int8, as made by `landed`.
    """
    return _value(_joined_bits(_bits(p), correction, _HALVES[p.dtype]), p.dtype)


def split(
    x: Float[Array, "..."],
    dtype: DTypeLike,
    correction: DTypeLike,
    noise: UInt[Array, "..."] | None = None,
) -> tuple[Float[Array, "..."], Int[Array, "..."]]:
    """The nearest numbers in half precision, and their corrections.

    `joined` returns `x` again. It is exact with int16 and bfloat16, for every finite
    float32 that bfloat16 does not round to infinity; with float16, if also
    `|x| >= 2^-17`. Below that it is off by at most 2^-41.

    Args:
        x: numbers in float32.
        dtype: bfloat16 or float16.
        correction: the dtype of the corrections, int16 or int8.
        noise: random bits, in uint8: an int8 correction is rounded up or down at
            random, so that its mean is right. `None` to round to nearest.
    """
    kind = _HALVES[jnp.dtype(dtype)]
    bits = _bits_for(x, dtype, correction, noise)
    hi = _nearest(bits)
    return with_bits(hi, dtype), _correction(bits, hi, correction, kind)


def joined_bfloat16(
    p: Float[Array, "..."], correction: Int[Array, "..."]
) -> Float[Array, "..."]:
    """`joined` for bfloat16, with fewer operations.

    It is right if `p` is finite, and not a zero with a negative correction. Such a zero
    becomes NaN. Infinity and NaN are returned as infinity or NaN.

    Args:
        p: numbers in bfloat16.
        correction: int16 or int8.
    """
    hi = bitcast_convert_type(p, jnp.int16).astype(jnp.int32) << 16
    rest = correction.astype(jnp.int32) << (16 - 8 * correction.dtype.itemsize)
    return bitcast_convert_type(hi + rest, jnp.float32)


def split_bfloat16(
    x: Float[Array, "..."],
    correction: DTypeLike,
    noise: UInt[Array, "..."] | None,
) -> tuple[Float[Array, "..."], Int[Array, "..."]]:
    """`split` for bfloat16, with fewer operations, if no number is above 2^100 or NaN.

    Args:
        x: numbers in float32.
        correction: the dtype of the corrections, int16 or int8.
        noise: random bits, in uint8, or `None`, as in `split`.
    """
    bits = bitcast_convert_type(x, jnp.int32)
    less = 16 - jnp.iinfo(correction).bits
    if less:
        bits = bits + (noise.astype(jnp.int32) if noise is not None else 1 << less - 1)
    hi = (bits + 0x8000) >> 16
    rest = (bits - (hi << 16)) >> less
    half = bitcast_convert_type(hi.astype(jnp.int16), jnp.bfloat16)
    return half, rest.astype(correction)


def rounded_bfloat16(
    x: Float[Array, "..."], noise: UInt[Array, "..."]
) -> Float[Array, "..."]:
    """`at_random` for bfloat16, with fewer operations, as in `split_bfloat16`.

    Args:
        x: numbers in float32, none above 2^100 or NaN.
        noise: random bits, in uint16.
    """
    bits = bitcast_convert_type(x, jnp.int32) + noise.astype(jnp.int32)
    return bitcast_convert_type((bits >> 16).astype(jnp.int16), jnp.bfloat16)


def landed(
    x: Float[Array, "..."],
    p: Float[Array, "..."],
    dtype: DTypeLike,
    noise: UInt[Array, "..."] | None = None,
) -> tuple[Float[Array, "..."], Int[Array, "..."]]:
    """The update that takes `p` to `x`, rounded to the dtype of `p`; the correction.

        hi = the number nearest to x in the dtype of p; ties go away from zero
        u  = hi - p
        c  = x - hi                         in units of the last bit

    Here `x` is the float32 sum of an update and of a number that `p` is nearest to.
    Then `p + u`, computed in float32, is exactly `hi`, with one exception: if `p` is a
    power of two, and `x` has the other sign and is 2^16 times smaller, `p + u` may be
    off by 2^-24 `p`. The correction is relative to the true `p + u`.

    An `x` that would be rounded to infinity goes to the largest finite number.

    Args:
        x: the wanted numbers, in float32.
        p: the current numbers, in half precision.
        dtype: the dtype of the correction, int16 or int8.
        noise: random bits, in uint8: an int8 correction is rounded up or down at
            random, so that its mean is right. `None` to round to nearest.
    """
    kind = _HALVES[p.dtype]
    bits = _bits_for(x, p.dtype, dtype, noise)
    u = way(_nearest(bits), p)
    there = _bits(_added(p, u))
    return u, _correction(bits, there, dtype, kind)


def way(hi: UInt[Array, "..."], p: Float[Array, "..."]) -> Float[Array, "..."]:
    """The float32 update that takes `p` to the number with the bits `hi`.

    Args:
        hi: bits of numbers in the dtype of `p`.
        p: numbers in half precision.
    """
    mine = _bits(p)
    most = float(jnp.finfo(jnp.float32).max)
    u = _wide(hi, p.dtype) - _wide(mine, p.dtype)
    bounded = jnp.where(_is_finite(hi, _HALVES[p.dtype]), jnp.clip(u, -most, most), u)
    # Minus zero changes no number, not even minus zero.
    return jnp.where(hi == mine, jnp.full_like(u, -0.0), bounded)


def at_random(
    x: Float[Array, "..."], dtype: DTypeLike, noise: UInt[Array, "..."]
) -> UInt[Array, "..."]:
    """The bits of one of the two neighbours of `x` in half precision, with mean `x`.

    Args:
        x: numbers in float32.
        dtype: bfloat16 or float16.
        noise: random bits, in uint16.
    """
    kind = _HALVES[jnp.dtype(dtype)]
    bits = _shortened(_extended(x, dtype), 16, noise, kind)
    return _nearest(_limited(bits, kind))


def with_bits(hi: UInt[Array, "..."], dtype: DTypeLike) -> Float[Array, "..."]:
    """The half-precision numbers with these bits."""
    return bitcast_convert_type(hi, jnp.dtype(dtype))


def _bits_for(
    x: Float[Array, "..."],
    dtype: DTypeLike,
    correction: DTypeLike,
    noise: UInt[Array, "..."] | None,
) -> UInt[Array, "..."]:
    """The extended bits of `x`, rounded to what a correction can hold."""
    kind = _HALVES[jnp.dtype(dtype)]
    bits = _extended(x, dtype)
    if jnp.dtype(correction) == jnp.int8:
        bits = _shortened(bits, 8, noise, kind)
    return _limited(bits, kind)


def _bits(p: Float[Array, "..."]) -> UInt[Array, "..."]:
    """The bits of numbers in half precision."""
    return bitcast_convert_type(p, jnp.uint16)


def _wide(hi: UInt[Array, "..."], dtype: DTypeLike) -> Float[Array, "..."]:
    """The float32 value of half-precision bits."""
    return _value(hi.astype(jnp.uint32) << 16, dtype)


def _added(p: Float[Array, "..."], u: Float[Array, "..."]) -> Float[Array, "..."]:
    """`p + u` as `apply_updates` computes it."""
    return (_wide(_bits(p), p.dtype) + u).astype(p.dtype)


def _is_finite(hi: UInt[Array, "..."], kind: _Half) -> Array:
    return (hi & 0x7FFF) < kind.infinity


def _extended(x: Float[Array, "..."], dtype: DTypeLike) -> UInt[Array, "..."]:
    """The extended bits of float32 numbers."""
    bits = bitcast_convert_type(x, jnp.uint32)
    kind = _HALVES[jnp.dtype(dtype)]
    sign, size = bits & _SIGN, bits & _MAGNITUDE
    if jnp.dtype(dtype) == jnp.float16:
        size = _float16_size(size, kind)
    # The bits of some NaNs begin like those of infinity.
    return sign | jnp.where(jnp.isnan(x), jnp.uint32(kind.nan << 16), size)


def _float16_size(size: UInt[Array, "..."], kind: _Half) -> UInt[Array, "..."]:
    """The extended bits of float16, from those of positive float32 numbers."""
    normal = (size - (112 << 23)) << 3
    # Below 2^-14 the numbers are equally spaced: multiples of 2^-40, with 16 more bits.
    mantissa = ((size & 0x7FFFFF) | 0x800000) << 2
    shift = jnp.clip(112 - (size >> 23).astype(jnp.int32), 0, 27).astype(jnp.uint32)
    half = (jnp.uint32(1) << shift) >> 1
    small = (mantissa + half) >> shift
    finite = jnp.where(size < _EXACT_ABOVE, small, normal)
    # 2^16 has the exponent of infinity.
    finite = jnp.where(size < 143 << 23, finite, jnp.uint32(kind.limit))
    return jnp.where(size < 0x7F800000, finite, jnp.uint32(kind.infinity << 16))


def _value(bits: UInt[Array, "..."], dtype: DTypeLike) -> Float[Array, "..."]:
    """The float32 numbers with these extended bits."""
    if jnp.dtype(dtype) == jnp.bfloat16:
        return bitcast_convert_type(bits, jnp.float32)
    kind = _HALVES[jnp.dtype(dtype)]
    sign, size = bits & _SIGN, bits & _MAGNITUDE
    small = size.astype(jnp.int32).astype(jnp.float32) * 2.0**-40
    small = bitcast_convert_type(small, jnp.uint32)
    wide = jnp.where(size < 1 << 26, small, (size >> 3) + (112 << 23))
    infinity = kind.infinity << 16
    wide = jnp.where(size >= infinity, jnp.uint32(0x7F800000), wide)
    wide = jnp.where(size > infinity, jnp.uint32(0x7FC00000), wide)
    return bitcast_convert_type(sign | wide, jnp.float32)


def _shortened(
    bits: UInt[Array, "..."],
    count: int,
    noise: UInt[Array, "..."] | None,
    kind: _Half,
) -> UInt[Array, "..."]:
    """Extended bits whose last `count` bits are rounded to zero."""
    half = np.uint32(1 << count - 1)
    add = half if noise is None else noise.astype(jnp.uint32)
    finite = (bits & _MAGNITUDE) < kind.infinity << 16
    size = jnp.minimum((bits & _MAGNITUDE) + add, jnp.uint32(kind.limit))
    size = (size >> count) << count
    return jnp.where(finite, (bits & _SIGN) | size, bits)


def _limited(bits: UInt[Array, "..."], kind: _Half) -> UInt[Array, "..."]:
    """Extended bits; those that would be rounded to infinity are made smaller."""
    size = bits & _MAGNITUDE
    finite = size < kind.infinity << 16
    size = jnp.where(finite, jnp.minimum(size, jnp.uint32(kind.limit)), size)
    return (bits & _SIGN) | size


def _nearest(bits: UInt[Array, "..."]) -> UInt[Array, "..."]:
    """The nearest half-precision bits, of limited bits; halves go away from zero."""
    return ((bits + 0x8000) >> 16).astype(jnp.uint16)


def _joined_bits(
    hi: UInt[Array, "..."], correction: Int[Array, "..."], kind: _Half
) -> UInt[Array, "..."]:
    """The extended bits of a half-precision number and a correction."""
    unit = 1 << (16 - 8 * correction.dtype.itemsize)
    rest = jnp.where(_is_finite(hi, kind), correction.astype(jnp.int32) * unit, 0)
    size = ((hi & 0x7FFF).astype(jnp.int32) << 16) + rest
    # A negative correction of zero goes to the other side.
    negative = ((hi >> 15) != 0) ^ (size < 0)
    sign = jnp.where(negative, jnp.uint32(_SIGN), jnp.uint32(0))
    return sign | jnp.abs(size).astype(jnp.uint32)


def _correction(
    bits: UInt[Array, "..."],
    hi: UInt[Array, "..."],
    dtype: DTypeLike,
    kind: _Half,
) -> Int[Array, "..."]:
    """The extended bits minus half-precision bits, as far as `dtype` can hold it."""
    size = (bits & _MAGNITUDE).astype(jnp.int32)
    near = (hi & 0x7FFF).astype(jnp.int32) << 16
    same = (bits >> 31).astype(jnp.uint16) == hi >> 15
    apart = -(jnp.minimum(size, _FAR) + jnp.minimum(near, _FAR))
    rest = jnp.where(same, size - near, apart)
    finite = _is_finite(hi, kind) & (size < kind.infinity << 16)
    info = jnp.iinfo(jnp.dtype(dtype))
    rest = jnp.clip(rest >> (16 - info.bits), info.min, info.max)
    return jnp.where(finite, rest, 0).astype(dtype)
