"""Numbers in 8 or 4 bits: codes in the shape of the array, and a scale for each block.

    x = sign level(|code|) scale          scale = max |x| in the block

A block is part of a row, that is, of the last axis. So an array can be split along its
other axes, and each part has the same codes as before.

Dettmers, Lewis, Shleifer and Zettlemoyer, 8-bit optimizers via block-wise quantization,
2021, arXiv:2110.02861

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
from jax.sharding import AxisType, PartitionSpec, reshard
from jax.typing import DTypeLike
from jaxtyping import Array, Float, PyTree

from ._dither import chance_of

Numbers = Float[Array, "..."]
# The levels of Li, Chen and Zhu, Memory efficient optimizers with 4-bit states, 2023,
# arXiv:2309.01507, up to the largest that both signs have, which is 1 here.
FEW = tuple(x / 0.8875 for x in (0.0055, 0.0325, 0.0775, 0.2125, 0.4375, 0.6625))
FEW = (0.0, *FEW, 1.0)


class Map(NamedTuple):
    """Which numbers the codes stand for. Functions are of absolute values."""

    dtype: DTypeLike  # of the codes, before `_stored`
    size: int  # of a block
    to_code: Callable[[Numbers], Numbers]  # z in [0, 1] -> its code, above zero
    to_level: Callable[[Numbers], Numbers]  # the inverse
    top: float  # the code of 1
    signed: bool = True
    # In a block with an element that is infinite or NaN, the code `top` means infinity,
    # and finite numbers have codes from `low` to `high`.
    low: float = 1.0
    high: float = 0.0
    nan: float = jnp.nan  # the code of NaN in such a block


def power_code(z: Numbers, *, top: int, power: int) -> Numbers:
    """The nearest of `top` levels: `top z^(1 / power)`, rounded.

    Levels are dense near zero. Neighbours differ by a fraction of `power / code`, so
    elements far below the largest one of their block still have a good precision. A
    number that is not zero gets code 1 or higher.

    Args:
        z: numbers in [0, 1].
        top: the code of 1.
        power: 3 or 4.
    """
    # On a CPU this is ten times as fast as `jnp.cbrt` (JAX 0.10.2).
    root = jnp.exp(jnp.log(z) / 3) if power == 3 else jnp.sqrt(jnp.sqrt(z))
    return jnp.maximum(jnp.round(top * root), 1)


def power_level(code: Numbers, *, top: int, power: int) -> Numbers:
    """The inverse of `power_code`: `(code / top)^power`."""
    y = jnp.where(code >= top, 1.0, code / top)  # exactly 1 at the top
    return y**power


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
    """`448 z` in float8 (e4m3); its smallest number or larger."""
    code = (z * 448.0).astype(jnp.float8_e4m3fn).astype(z.dtype)
    return jnp.maximum(code, 2.0**-9)


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
    "signed4": Map(jnp.int4, 128, few_code, few_level, 7, low=0, high=6, nan=-8),
    "dithered4": Map(
        jnp.int4,
        128,
        dithered_code,
        partial(power_level, top=7, power=2),
        7,
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
        jnp.float8_e4m3fn, 256, float8_code, float8_level, 448, low=2.0**-9, high=416
    ),
}


class Coded(NamedTuple):
    """An array in 8 or 4 bits. The subclasses are the maps."""

    codes: PyTree  # an array of integers, in the shape of the array that is stored
    scales: PyTree  # (..., blocks): the scales of the blocks of each row

    kind = ""  # the name of the map

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the array."""
        return tuple(self.codes.shape)

    @property
    def dtype(self) -> np.dtype:
        """The dtype of the decoded array: float32, or float64."""
        return self.scales.dtype

    def decode(self) -> Float[Array, "... n"]:
        """The array, up to the precision of its codes."""
        return _decoded(self.kind, self.codes, self.scales)

    def like(self, x: Float[Array, "... n"]) -> "Coded":
        """Another array, stored in the same way.

        Args:
            x: an array of the same shape.
        """
        return encode(x.astype(self.dtype), self.kind)


class Signed8(Coded):
    """Signed numbers: `(code / 127)^3`."""

    kind = "signed8"


class Signed4(Coded):
    """Signed numbers in 15 levels, two in each byte along the last axis."""

    kind = "signed4"

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the array."""
        *rest, n = self.codes.shape
        return (*rest, 2 * n)


class Dithered4(Signed4):
    """Signed numbers in 15 levels, rounded up or down at random."""

    kind = "dithered4"


class Unsigned8(Coded):
    """Nonnegative numbers: `(code / 255)^4`."""

    kind = "unsigned8"


class Float8(Coded):
    """Numbers in float8 (e4m3), with a scale. The codes are its bits."""

    kind = "float8"


CLASSES = {x.kind: x for x in (Signed8, Signed4, Dithered4, Unsigned8, Float8)}


def is_coded(x: object) -> bool:
    """Whether `x` is an array in 8 or 4 bits."""
    return isinstance(x, Coded)


def encode(x: Float[Array, "... n"], kind: str) -> Coded:
    """Store an array in 8 or 4 bits.

    In 8 bits, zero has code 0, and no other number has: a mean square that becomes zero
    would make a step too large.

    Infinity and NaN are kept, and do not change the other elements of their block,
    except that these have a few levels less. The scale of such a block is negative.

    Args:
        x: an array with one axis or more, in float32 or float64. In 4 bits, the last
            axis must have an even length.
        kind: "signed8", "signed4" or "dithered4" for numbers of both signs, "unsigned8"
            for nonnegative ones, where negative ones become zero, or "float8" for
            either. All round to nearest, except "dithered4".

    >>> import jax.numpy as jnp
    >>> encode(jnp.array([0.0, 1e-9, 0.5, -1.0]), "signed8").codes.tolist()
    [0, 1, 101, -127]
    """
    codes, scales = _encoded(kind, x)
    return CLASSES[kind](codes, scales)


@partial(jax.jit, static_argnums=0, inline=True)
def _encoded(kind: str, x: Numbers) -> tuple[Array, Array]:
    """The codes and scales of an array."""
    this = MAPS[kind]
    info = jnp.finfo(x.dtype)
    x = x if this.signed else jnp.maximum(x, 0)
    size = jnp.abs(x)
    finite = jnp.where(size < jnp.inf, size, 0)
    most = _largest(finite, this.size)
    # Not from the maximum of `size`: XLA's CPU compiler may lose a NaN in it, if it
    # fuses the maximum with a formula (JAX 0.10.2).
    special = _largest(~(size < jnp.inf), this.size)
    below_top = this.to_level(jnp.asarray(this.high, x.dtype))
    wider = jnp.maximum(jnp.minimum(most / below_top, info.max), info.tiny)
    # A scale below `tiny` could be flushed to zero where its elements are not.
    scales = jnp.where(most > 0, jnp.maximum(most, info.tiny), 0)
    scales = jnp.where(special, -wider, scales)
    scale = _spread(scales, x, this.size)
    special, scale = scale < 0, jnp.abs(scale)
    # XLA multiplies by 1 / scale, which would be flushed to zero for the largest ones.
    less = jnp.where(scale > 1, 2.0**-8, 1.0)
    code = this.to_code(finite * less / jnp.where(scale > 0, scale * less, 1))
    code = jnp.where(special, jnp.clip(code, this.low, this.high), code)
    code = jnp.where(size == jnp.inf, this.top, code)
    code = jnp.where(x < 0, -code, code)
    code = jnp.where(size > 0, code, jnp.where(jnp.isnan(x), this.nan, 0))
    return _stored(code.astype(this.dtype)), scales


@partial(jax.jit, static_argnums=0, inline=True)
def _decoded(kind: str, codes: Array, scales: Numbers) -> Numbers:
    """The array with these codes and scales."""
    this = MAPS[kind]
    code = _loaded(codes, this.dtype).astype(scales.dtype)
    scale = _spread(scales, code, this.size)
    size = jnp.abs(code)
    x = jnp.where(code == 0, 0, this.to_level(size) * jnp.abs(scale))
    x = jnp.where((scale < 0) & (size == this.top), jnp.inf, x)
    x = jnp.where(code < 0, -x, x)
    return jnp.where((scale < 0) & (code == this.nan), jnp.nan, x)


def _stored(code: Array) -> Array:
    """Codes as integers of 8 bits, which NumPy can save.

    Not as JAX's int4, which has 8 bits on some devices.
    """
    if code.dtype == jnp.int4:
        bits = code.astype(jnp.int8).astype(jnp.uint8) & 15
        pairs = bits.reshape(*bits.shape[:-1], -1, 2)
        return pairs[..., 0] | (pairs[..., 1] << 4)
    if code.dtype == jnp.float8_e4m3fn:
        return jax.lax.bitcast_convert_type(code, jnp.uint8)
    return code


def _loaded(codes: Array, dtype: DTypeLike) -> Array:
    """Undo `_stored`; 4 bits become 8."""
    if dtype == jnp.int4:
        pairs = jnp.stack([codes & 15, codes >> 4], axis=-1)
        bits = pairs.reshape(*codes.shape[:-1], -1).astype(jnp.int8)
        return (bits ^ 8) - 8  # from 0 ... 15 to 0 ... 7 and -8 ... -1
    if dtype == jnp.float8_e4m3fn:
        return jax.lax.bitcast_convert_type(codes, jnp.float8_e4m3fn)
    return codes


def _largest(x: Array, size: int) -> Array:
    """The largest element of each block: (..., blocks)."""
    *rest, n = x.shape
    size = min(size, n)
    short = -n % size
    if short:
        x = _sharded_like(x, x, whole_rows=True)
        x = jnp.pad(x, [(0, 0)] * len(rest) + [(0, short)])
    return jnp.max(x.reshape(*rest, (n + short) // size, size), axis=-1)


def _spread(scales: Numbers, x: Array, size: int) -> Numbers:
    """The scale of each element of `x`."""
    *rest, blocks = scales.shape
    if blocks == 1:
        return scales
    each = jnp.broadcast_to(scales[..., None], (*rest, blocks, size))
    each = each.reshape(*rest, blocks * size)
    n = x.shape[-1]
    return each if n == blocks * size else _sharded_like(each[..., :n], x)


def _sharded_like(x: Array, like: Array, *, whole_rows: bool = False) -> Array:
    """`x` sharded like another array, on a mesh with explicit axes.

    Only for rows that are not whole blocks: JAX cannot infer their sharding. On every
    other mesh this is `x`.

    Args:
        x: an array.
        like: an array of the same shape.
        whole_rows: whether rows are not split.
    """
    where = jax.typeof(like).sharding
    if AxisType.Explicit not in where.mesh.axis_types:
        return x
    spec = [*where.spec, *[None] * (like.ndim - len(where.spec))]
    return reshard(x, PartitionSpec(*spec[:-1], None if whole_rows else spec[-1]))
