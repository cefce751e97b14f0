"""Numbers in 8 or 4 bits: codes in the shape of the array, and a scale for each block.

    x = sign level(|code|) scale          scale = max |x| in the block

A block is part of a row, that is, of the last axis. So an array can be split along its
other axes, and each part has the same codes as before.

Dettmers, Lewis, Shleifer and Zettlemoyer, 8-bit optimizers via block-wise quantization,
2021, arXiv:2110.02861

Ortiz et al., FlashOptim: optimizers for memory efficient training, 2026,
arXiv:2602.23349
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import Array, Float, Shaped

Numbers = Float[Array, "..."]
DECADES = 7  # of the dynamic map


class Map(NamedTuple):
    """Which numbers the codes stand for. Functions are of absolute values."""

    dtype: DTypeLike  # of the codes
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


def softsign_code(z: Numbers, *, top: int) -> Numbers:
    """The nearest of `top` levels: `top * 2 z / (1 + z)`, rounded.

    Levels are dense near zero, where most elements of a momentum are. A number that is
    not zero gets code 1 or higher.

    Args:
        z: numbers in [0, 1].
        top: the code of 1.
    """
    return jnp.maximum(jnp.round(top * (2 * z / (1 + z))), 1)


def softsign_level(code: Numbers, *, top: int) -> Numbers:
    """The inverse of `softsign_code`: `y / (2 - y)` with `y = code / top`."""
    return code / (2 * top - code)  # exactly 1 at the top


def dynamic_level(code: Numbers) -> Numbers:
    """The levels of bitsandbytes' dynamic map for nonnegative numbers.

        10^(j - 7) (0.1 + 0.9 (r + 1/2) / 2^j)      code = 2^j - 1 + r,  0 <= r < 2^j

    for j = 1 ... 7, and 1 for code 255. From decade to decade there are twice as many
    levels.

    Args:
        code: whole numbers from 1 to 255.
    """
    k = code + 1
    powers, parts = jnp.full_like(k, 1e-6), jnp.full_like(k, 2.0)
    for j in range(2, DECADES + 1):
        powers = jnp.where(k >= 2**j, 10.0 ** (j - DECADES), powers)
        parts = jnp.where(k >= 2**j, 2.0**j, parts)
    level = powers * (0.1 + 0.9 * ((k - parts + 0.5) / parts))
    return jnp.where(code >= 255, 1.0, level)


def dynamic_code(z: Numbers) -> Numbers:
    """The code of the nearest level of `dynamic_level`; 1 or higher.

    Args:
        z: numbers in [0, 1].
    """
    powers, parts = jnp.full_like(z, 1e6), jnp.full_like(z, 2.0)
    for j in range(1, DECADES):
        # Halfway between the last level of a decade and the first of the next.
        above = z > 10.0 ** (j - DECADES) * (1 + 0.9 / 2**j)
        powers = jnp.where(above, 10.0 ** (DECADES - 1 - j), powers)
        parts = jnp.where(above, 2.0 ** (j + 1), parts)
    r = jnp.clip(jnp.floor((z * powers - 0.1) / 0.9 * parts), 0, parts - 1)
    return jnp.where(z > 1 - 0.225 / 2**DECADES, 255.0, parts - 1 + r)


def float8_code(z: Numbers) -> Numbers:
    """`448 z` in float8 (e4m3); its smallest number or larger."""
    code = (z * 448.0).astype(jnp.float8_e4m3fn).astype(z.dtype)
    return jnp.maximum(code, 2.0**-9)


def float8_level(code: Numbers) -> Numbers:
    """The inverse of `float8_code`."""
    # XLA multiplies by 1 / 448, and the product may not be exactly 1 at the top.
    return jnp.where(code >= 448, 1.0, code / 448.0)


def _softsign(dtype: DTypeLike, size: int, top: int) -> Map:
    to_code, to_level = (
        partial(softsign_code, top=top),
        partial(softsign_level, top=top),
    )
    return Map(dtype, size, to_code, to_level, top, high=top - 1, nan=-top - 1)


MAPS = {
    "softsign8": _softsign(jnp.int8, 256, 127),
    "softsign4": _softsign(jnp.int4, 128, 7),
    "dynamic8": Map(
        jnp.uint8,
        256,
        dynamic_code,
        dynamic_level,
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


@jax.tree_util.register_pytree_with_keys_class
@dataclass(frozen=True, eq=False)
class Coded:
    """An array in 8 or 4 bits. It is a JAX pytree of two arrays."""

    codes: Shaped[Array, "... n"]  # in the shape of the array
    scales: Float[Array, "... blocks"]  # the scales of the blocks of each row
    kind: str  # the map: softsign8, softsign4, dynamic8 or float8

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

    def tree_flatten_with_keys(
        self,
    ) -> tuple[tuple[tuple[object, Any], ...], str]:
        """For JAX: the children by name, and the kind."""
        key = jax.tree_util.GetAttrKey
        return ((key("codes"), self.codes), (key("scales"), self.scales)), self.kind

    @classmethod
    def tree_unflatten(cls, kind: str, children: Iterable[Any]) -> "Coded":
        """For JAX: the array with these codes and scales."""
        codes, scales = children
        return cls(codes, scales, kind)


def is_coded(x: object) -> bool:
    """Whether `x` is an array in 8 or 4 bits."""
    return isinstance(x, Coded)


def encode(x: Float[Array, "... n"], kind: str) -> Coded:
    """Store an array in 8 or 4 bits.

    Zero has code 0, and no other number has: a mean square that becomes zero would make
    a step too large. Its error is then larger than half the distance of two levels.

    Infinity and NaN are kept, and do not change the other elements of their block,
    except that these have a few levels less. The scale of such a block is negative.

    Args:
        x: an array with one axis or more, in float32 or float64.
        kind: "softsign8" or "softsign4" for numbers of both signs, "dynamic8" for
            nonnegative ones, where negative ones become zero, or "float8" for either.

    >>> import jax.numpy as jnp
    >>> encode(jnp.array([0.0, 1e-9, 0.5, -1.0]), "softsign8").codes.tolist()
    [0, 1, 85, -127]
    """
    codes, scales = _encoded(kind, x)
    return Coded(codes, scales, kind)


@partial(jax.jit, static_argnums=0, inline=True)
def _encoded(kind: str, x: Numbers) -> tuple[Array, Array]:
    """The codes and scales of an array."""
    this = MAPS[kind]
    n = x.shape[-1]
    x = _blocks(x if this.signed else jnp.maximum(x, 0), this.size)
    size = jnp.abs(x)
    finite = jnp.where(size < jnp.inf, size, 0)
    most = jnp.max(finite, axis=-1, keepdims=True)
    special = ~(jnp.max(size, axis=-1, keepdims=True) < jnp.inf)
    info = jnp.finfo(x.dtype)
    tiny = info.tiny
    below_top = this.to_level(jnp.asarray(this.high, x.dtype))
    wider = jnp.minimum(most / below_top, info.max)
    # A scale below `tiny` could be flushed to zero where its elements are not.
    scale = jnp.where(most > 0, jnp.maximum(jnp.where(special, wider, most), tiny), 0)
    # XLA multiplies by 1 / scale, which would be flushed to zero for the largest ones.
    less = jnp.where(scale > 1, 2.0**-8, 1.0)
    code = this.to_code(finite * less / jnp.where(scale > 0, scale * less, 1))
    code = jnp.where(special, jnp.clip(code, this.low, this.high), code)
    code = jnp.where(size == jnp.inf, this.top, code)
    code = jnp.where(x < 0, -code, code)
    code = jnp.where(size > 0, code, jnp.where(jnp.isnan(x), this.nan, 0))
    scale = jnp.where(special, -jnp.maximum(scale, tiny), scale)
    codes = code.reshape(*code.shape[:-2], -1)[..., :n]
    return codes.astype(this.dtype), scale[..., 0]


@partial(jax.jit, static_argnums=0, inline=True)
def _decoded(kind: str, codes: Array, scales: Numbers) -> Numbers:
    """The array with these codes and scales."""
    this = MAPS[kind]
    code = codes.astype(scales.dtype)
    scale = _spread(scales, codes.shape[-1], this.size)
    size = jnp.abs(code)
    x = jnp.where(code == 0, 0, this.to_level(size) * jnp.abs(scale))
    x = jnp.where((scale < 0) & (size == this.top), jnp.inf, x)
    x = jnp.where(code < 0, -x, x)
    return jnp.where((scale < 0) & (code == this.nan), jnp.nan, x)


def _blocks(x: Numbers, size: int) -> Numbers:
    """The rows of an array as blocks (..., blocks, size), filled up with zeros."""
    *rest, n = x.shape
    size = min(size, n)
    short = -n % size
    if short:
        x = jnp.pad(x, [(0, 0)] * len(rest) + [(0, short)])
    return x.reshape(*rest, (n + short) // size, size)


def _spread(scales: Numbers, n: int, size: int) -> Numbers:
    """The scale of each of `n` elements of a row."""
    *rest, blocks = scales.shape
    if blocks == 1:
        return scales
    each = jnp.broadcast_to(scales[..., None], (*rest, blocks, size))
    return each.reshape(*rest, blocks * size)[..., :n]
