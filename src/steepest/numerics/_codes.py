"""Numbers in 8 or 4 bits: codes in the shape of the array, and a scale for each block.

    x = sign level(|code|) scale          scale = max |x| in the block

A block is part of a row, that is, of the last axis. So an array can be split along its
other axes, and each part has the same codes as before.

Dettmers, Lewis, Shleifer and Zettlemoyer, 8-bit optimizers via block-wise quantization,
2021, arXiv:2110.02861
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, PartitionSpec, reshard
from jax.typing import DTypeLike
from jaxtyping import Array, Float, PyTree

from ._corrected import Corrected
from ._maps import Codes, Map, MAPS, Numbers

LARGE = 2.0**100  # the inverse of a larger number may be flushed to zero


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
    """Whether `x` is an array in 8 or 4 bits, or in half precision with corrections."""
    return isinstance(x, Coded | Corrected)


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
    scales = _scales_of(kind, x)
    return CLASSES[kind](codes_of(kind, x, scales), scales)


@partial(jax.jit, static_argnums=0, inline=True)
def _scales_of(kind: str, x: Numbers) -> Numbers:
    """The scale of each block."""
    blocks = partial(_largest, size=MAPS[kind].size)
    return scales_from(kind, *map(blocks, sizes_of(kind, x)))


def sizes_of(kind: str, x: Numbers) -> tuple[Numbers, Numbers]:
    """Absolute values, or zero for infinity and NaN; and one for these, else zero."""
    size = jnp.abs(allowed(kind, x))
    # The largest `size` would not do: XLA's CPU compiler may lose a NaN in it, if it
    # fuses the maximum with a formula (JAX 0.10.2).
    return jnp.where(size < jnp.inf, size, 0), jnp.where(size < jnp.inf, 0.0, 1.0)


def scales_from(kind: str, most: Numbers, special: Numbers) -> Numbers:
    """The scale of each block.

    Args:
        kind: the name of a map.
        most: the largest of the first result of `sizes_of` in each block.
        special: that of the second.
    """
    this, info = MAPS[kind], jnp.finfo(most.dtype)
    below_top = this.to_level(jnp.asarray(this.high, most.dtype))
    wider = jnp.maximum(jnp.minimum(most / below_top, info.max), info.tiny)
    return jnp.where(special > 0, -wider, _ordinary_scales(most))


@partial(jax.jit, static_argnums=0, inline=True)
def codes_of(kind: str, x: Numbers, scales: Numbers) -> Array:
    """The code of each element, in blocks with these scales."""
    this = MAPS[kind]
    x = allowed(kind, x)
    size = jnp.abs(x)
    finite = jnp.where(size < jnp.inf, size, 0)
    # The inverse is computed for each block: on a GPU a division takes as long as ten
    # products. For the largest scales, it would be flushed to zero.
    scale = jnp.abs(scales)
    less = jnp.where(scale > LARGE, 2.0**-8, 1.0)
    each = lambda per_block: _spread(per_block, x, this.size)
    code = _ordinary(this, finite, each(less), each(_inverse(scale * less)))
    number = lambda k: np.asarray(k, code.dtype)
    inside = jnp.minimum(jnp.maximum(code, number(this.low)), number(this.high))
    code = jnp.where((each(scales) < 0) & (size > 0), inside, code)
    code = jnp.where(size == jnp.inf, number(this.top), code)
    code = jnp.where(x < 0, -code, code)
    code = jnp.where(jnp.isnan(x), number(this.nan), code)
    return _stored(code.astype(this.dtype))


def read_twice(
    function: Callable[..., tuple[PyTree, PyTree]],
    kept: PyTree,
    given: PyTree,
    numbers: Sequence[Array],
) -> tuple[PyTree, PyTree]:
    """`function` of memory in few bits: once for its scales, and again for its codes.

    The result is as if memory was decoded, and the results encoded. Without the barrier
    XLA computes the function in one loop for each result, and may fuse one of them with
    the largest elements of another: AdamW then takes 12 to 36 ms for 1.07 billion
    params on an H200, and 9 ms with it (JAX 0.11.2). On one device, `in_tiles` is
    faster. Benchmark: `python -m benchmarks.gpu memory`.

    Args:
        function: `(kept, given, numbers) -> (kept, other results)`, elementwise.
        kept: arrays, and memory in few bits, which is decoded for the function.
        given: other arrays.
        numbers: arrays without axes.
    """
    old, treedef = jax.tree.flatten(kept, is_leaf=is_coded)

    def called(old: list[Any], given: PyTree) -> tuple[list[Array], PyTree]:
        plain = [x.decode() if is_coded(x) else x for x in old]
        new, others = function(treedef.unflatten(plain), given, numbers)
        return treedef.flatten_up_to(new), others

    new, _ = called(old, given)
    pairs = zip(old, new, strict=True)
    scales = [_scales_of(c.kind, x) if is_coded(c) else None for c, x in pairs]
    old, given, scales = jax.lax.optimization_barrier((old, given, scales))
    new, others = called(old, given)
    rows = zip(old, new, scales, strict=True)
    stored = [
        type(was)(codes_of(was.kind, x, s), s) if is_coded(was) else x
        for was, x, s in rows
    ]
    return treedef.unflatten(stored), others


def encoded_row(kind: str, x: Float[Array, "rows n"], most: Numbers) -> Coded:
    """`encode` for rows of one block, if no number is above `LARGE` or NaN.

    Then there is less to do, and the result is the same.

    Args:
        kind: "signed8" or "unsigned8".
        x: the rows. For "unsigned8" no sign bit is set: there is no -0.0, either.
        most: the largest absolute value of each row.
    """
    this = MAPS[kind]
    # With these bounds, the division takes a kernel one instruction instead of eight. A
    # row of zeros has the scale 0, and any inverse.
    least = jnp.finfo(most.dtype).tiny
    inverse = 1 / jnp.minimum(jnp.maximum(most, least), LARGE)
    code = _ordinary(this, jnp.abs(x) if this.signed else x, None, inverse)
    code = jnp.where(x < 0, -code, code) if this.signed else code
    return CLASSES[kind](code.astype(this.dtype), _ordinary_scales(most))


def allowed(kind: str, x: Numbers) -> Numbers:
    """`x`, with zero in place of numbers that have no code."""
    # Not `jnp.maximum`, which loses a NaN in a kernel of Triton (JAX 0.11.2).
    return x if MAPS[kind].signed else jnp.where(x < 0, 0, x)


def _ordinary_scales(most: Numbers) -> Numbers:
    """The scales of blocks with these largest elements.

    A scale below `tiny` could be flushed to zero where its elements are not.
    """
    return jnp.where(most > 0, jnp.maximum(most, jnp.finfo(most.dtype).tiny), 0)


def _inverse(scale: Numbers) -> Numbers:
    return 1 / jnp.where(scale > 0, scale, 1)


def _ordinary(
    this: Map, size: Numbers, less: Numbers | None, inverse: Numbers
) -> Codes:
    """The codes of nonnegative numbers; zero only for zero, where the map says so."""
    code = this.to_code((size if less is None else size * less) * inverse)
    if code.dtype == jnp.int32 and size.dtype == jnp.float32:
        # The bits of zero are zero. This is one operation less than the lines below.
        bits = jax.lax.bitcast_convert_type(size, jnp.int32)
        return jnp.maximum(code, jnp.minimum(bits, 1))
    least = np.asarray(this.least, code.dtype)
    return jnp.where(size > 0, jnp.maximum(code, least), np.asarray(0, code.dtype))


@partial(jax.jit, static_argnums=0, inline=True)
def _decoded(kind: str, codes: Array, scales: Numbers) -> Numbers:
    """The array with these codes and scales."""
    this = MAPS[kind]
    code = _number(_loaded(codes, this.dtype), scales.dtype)
    scale = _spread(scales, code, this.size)
    size = jnp.abs(code)
    x = this.to_level(size) * jnp.abs(scale)
    x = jnp.where((scale < 0) & (size == this.top), jnp.inf, x)
    x = jnp.where(code < 0, -x, x)
    return jnp.where((scale < 0) & (code == this.nan), jnp.nan, x)


def decoded_row(
    stored: Coded, number: Callable[[Array], Numbers] | None = None
) -> Float[Array, "rows n"]:
    """`decode` for rows of one block, if no scale is negative.

    Then there is less to do, and the result is the same.

    Args:
        stored: in 8 bits.
        number: codes as floating numbers, if there is a faster way than the usual one.
    """
    this = MAPS[stored.kind]
    code = (number or partial(_number, dtype=stored.dtype))(stored.codes)
    # An odd power keeps the sign.
    return this.to_level(code) * stored.scales


def _number(code: Array, dtype: DTypeLike) -> Numbers:
    """Codes as floating numbers.

    On a GPU, a cast takes as long as eight sums (an H200).
    """
    if dtype != jnp.float32 or code.dtype not in (jnp.int8, jnp.uint8):
        return code.astype(dtype)
    bits = code.astype(jnp.int32) + np.int32(0x4B400000)  # those of 1.5 * 2^23
    return jax.lax.bitcast_convert_type(bits, jnp.float32) - np.float32(1.5 * 2**23)


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
