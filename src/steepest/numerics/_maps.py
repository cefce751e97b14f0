"""Maps: which numbers the codes of 8 or 4 bits stand for.

Codes are powers: z = (code / 127)^3 for signed numbers, and (code / 255)^4 for
nonnegative ones, such as mean squares. In a block whose columns differ by a factor of
100, Adam's updates are then closer to those in float32 than with bitsandbytes' dynamic
map, and much closer than with FlashOptim's softsign map (2026, arXiv:2602.23349), which
has no level below 1/253: `tests/laws/test_low_bit.py`.
"""

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import Array, Float, Num

from ._dither import chance_of

Numbers = Float[Array, "..."]
Float32 = Float[Array, "..."]  # in 32 bits
Codes = Num[Array, "..."]  # whole numbers, or those of float8
# The levels of Li, Chen and Zhu, Memory efficient optimizers with 4-bit states, 2023,
# arXiv:2309.01507, up to the largest that both signs have, which is 1 here.
FEW = tuple(x / 0.8875 for x in (0.0055, 0.0325, 0.0775, 0.2125, 0.4375, 0.6625))
FEW = (0.0, *FEW, 1.0)


class Map(NamedTuple):
    """Which numbers the codes stand for. Functions are of absolute values."""

    dtype: DTypeLike  # of the codes, before `_stored`
    size: int  # of a block
    to_code: Callable[[Numbers], Codes]  # z in [0, 1] -> its code
    to_level: Callable[[Numbers], Numbers]  # the inverse; 0 at 0
    top: float  # the code of 1
    signed: bool = True
    least: float = 1.0  # the smallest code of a number that is not zero
    # In a block with an element that is infinite or NaN, the code `top` means infinity,
    # and finite numbers have codes from `low` to `high`.
    low: float = 1.0
    high: float = 0.0
    nan: float = jnp.nan  # the code of NaN in such a block


def power_code(z: Numbers, *, top: int, power: int) -> Codes:
    """The nearest of `top` levels: `top z^(1 / power)`, rounded.

    Levels are dense near zero. Neighbours differ by a fraction of `power / code`, so
    elements far below the largest one of their block still have a good precision.

    Args:
        z: numbers in [0, 1].
        top: the code of 1.
        power: 3 or 4.
    """
    if z.dtype != jnp.float32:
        root = jnp.cbrt(z) if power == 3 else jnp.sqrt(jnp.sqrt(z))
        return jnp.round(top * root).astype(jnp.int32)
    root = cube_root(z) if power == 3 else fourth_root(z)
    # The sum is rounded to a whole number, which its last bits show. On a GPU, `round`
    # and a cast each take as long as eight sums (an H200).
    bits = jax.lax.bitcast_convert_type(top * root + np.float32(2**23), jnp.int32)
    return bits - np.int32(0x4B000000)


def power_level(code: Numbers, *, top: int, power: int) -> Numbers:
    """The inverse of `power_code`: `(code / top)^power`."""
    # XLA would choose between a division and this; `top * (1 / top)` is exactly 1.
    y = code * np.asarray(1 / top, code.dtype)
    return y**power


def cube_root(z: Float32) -> Float32:
    """`z^(1/3)` for `z >= 0`, up to a factor of 1 + 5e-5; exactly 0 at 0.

    A third of the bits of `z` is about a third of its logarithm. This gives a guess for
    `r = z^(-1/3)`, and then `z^(1/3) = w (1 - e)^(-2/3)` with `w = z r^2` and
    `e = 1 - w r`, at most 0.105, is a series. It takes a dozen operations. An encoder
    on a GPU takes as long as its arithmetic, and `exp` and `log` are much more of it;
    `jnp.cbrt` is slow on a CPU, too (JAX 0.10.2).

    Args:
        z: numbers in float32.
    """
    bits = jax.lax.bitcast_convert_type(z, jnp.uint32)
    third = jax.lax.div(bits, jnp.full_like(bits, 3))
    r = jax.lax.bitcast_convert_type(np.uint32(0x54A20000) - third, jnp.float32)
    w = z * r * r
    e = 1 - w * r
    return w + w * e * (2 / 3 + e * (5 / 9 + e * (40 / 81)))


def fourth_root(z: Float32) -> Float32:
    """`z^(1/4)` for `z >= 0`, up to a factor of 1 + 1.5e-4; exactly 0 at 0.

    Like `cube_root`: `r` is a guess for `z^(-1/4)`, and `z^(1/4) = w (1 - e)^(-3/4)`
    with `w = z r^3` and `e = 1 - w r`, at most 0.125.

    Args:
        z: numbers in float32.
    """
    bits = jax.lax.bitcast_convert_type(z, jnp.uint32)
    r = jax.lax.bitcast_convert_type(np.uint32(0x4F580000) - (bits >> 2), jnp.float32)
    w = z * r * r * r
    e = 1 - w * r
    return w + w * e * (3 / 4 + e * (21 / 32 + e * (77 / 128)))


def few_code(z: Numbers) -> Numbers:
    """The code of the nearest of 8 levels, which may be zero.

    In 4 bits, tiny numbers become zero: the smallest level is too large for them, and a
    momentum would not decay.
    """
    code = jnp.zeros_like(z)
    for k, (a, b) in enumerate(pairwise(FEW)):
        code = jnp.where(z > (a + b) / 2, k + 1.0, code)
    return code


def few_level(code: Numbers) -> Numbers:
    """The inverse of `few_code`."""
    level = jnp.zeros_like(code)
    for k, x in enumerate(FEW):
        level = jnp.where(code >= k, x, level)
    return level


def dithered_code(z: Numbers) -> Numbers:
    """The code of one of the two neighbours of `z` among 8 levels, with mean `z`.

    To the nearest level, a momentum with decay 0.99 does not move: a step changes it by
    1 %, and levels differ by far more. Rounded up or down at random, it follows its
    gradients on average. The level is `(code / 7)^2`.

    Args:
        z: numbers in [0, 1].
    """
    code = jnp.floor(7 * jnp.sqrt(z))
    low, high = (code / 7) ** 2, ((code + 1) / 7) ** 2
    # A level is kept: its share is 0 or 1 up to rounding, and the chance is neither.
    up = (z - low) / (high - low) > chance_of(z)
    return jnp.minimum(jnp.where(up, code + 1, code), 7)


def float8_code(z: Numbers) -> Numbers:
    """`448 z` in float8 (e4m3)."""
    return (z * 448.0).astype(jnp.float8_e4m3fn).astype(z.dtype)


def float8_level(code: Numbers) -> Numbers:
    """The inverse of `float8_code`."""
    # XLA multiplies by 1 / 448, and the product may not be exactly 1 at the top.
    return jnp.where(code >= 448, 1.0, code / 448.0)


MAPS = {
    "signed8": Map(
        jnp.int8,
        256,
        partial(power_code, top=127, power=3),
        partial(power_level, top=127, power=3),
        127,
        high=126,
        nan=-128,
    ),
    "signed4": Map(
        jnp.int4, 128, few_code, few_level, 7, least=0, low=0, high=6, nan=-8
    ),
    "dithered4": Map(
        jnp.int4,
        128,
        dithered_code,
        partial(power_level, top=7, power=2),
        7,
        least=0,
        low=0,
        high=6,
        nan=-8,
    ),
    "unsigned8": Map(
        jnp.uint8,
        256,
        partial(power_code, top=255, power=4),
        partial(power_level, top=255, power=4),
        255,
        signed=False,
        low=2,
        high=254,
        nan=1,
    ),
    "float8": Map(
        jnp.float8_e4m3fn,
        256,
        float8_code,
        float8_level,
        448,
        least=2.0**-9,
        low=2.0**-9,
        high=416,
    ),
}
