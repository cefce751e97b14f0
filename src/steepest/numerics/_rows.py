"""How a kernel decodes and encodes a row of one block.

Most rows are ordinary: no infinity, no NaN, nothing above `LARGE`, and no sign bit in
memory that is nonnegative. For them, fewer operations give the same result. `Ordinary`
notices a row that is not, whose results are wrong then. The functions with `exact` in
their names are for any row, piece by piece.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, UInt32

from ._codes import (
    Coded,
    codes_of,
    decoded_row,
    encoded_row,
    LARGE,
    scales_from,
    Signed8,
    sizes_of,
)
from ._corrected import Corrected
from ._dither import hashed, hashes_of_row
from ._split import joined_bfloat16, rounded_bfloat16, split_bfloat16

_LIMIT = np.float32(LARGE).view(np.uint32)

Stored = Array | Coded | Corrected
# (plain arrays, numbers) -> (new ones of what is kept, other results)
Formula = Callable[[Sequence[Array], Sequence[Array]], tuple[list[Array], list[Array]]]


class Place(NamedTuple):
    """Some elements of a row of one block."""

    start: int | Array  # the first column, in the block
    column: Int[Array, "1 n"]  # the columns, counted from there
    inside: Array | None  # which are inside the array; `None` if all are
    index: tuple[Array, Array]  # row and first column, in the whole array
    length: int  # of a row of the array


class Ordinary:
    """Decodes and encodes a row, if it is ordinary.

    Args:
        seeds: those of leaves with corrections.
        interpret: whether the kernel is interpreted.
    """

    def __init__(self, seeds: Sequence[Array], *, interpret: bool):
        # With its imports, as slow as Pallas.
        from ._kernel_arithmetic import for_kernel, number_of_code

        self._seeds = iter(seeds)
        self._shorter = partial(for_kernel, interpret=interpret)
        self._number = None if interpret else number_of_code
        # The bits of a number without sign are in order: NaN, infinity, large ones,
        # others. A sign bit is above all of them.
        self._most = jnp.uint32(0)

    @property
    def is_ordinary(self) -> Array:
        """Whether the row was ordinary, as far as it was decoded and encoded."""
        return self._most <= _LIMIT

    def decoded(self, like: Stored, loaded: Iterator[Array]) -> Array:
        """Elements of a leaf, from the next of the loaded arrays."""
        if isinstance(like, Corrected):
            if like.correction is None:
                return next(loaded).astype(jnp.float32)
            # What it cannot decode is NaN, and so is the new number.
            return joined_bfloat16(next(loaded), next(loaded))
        if not isinstance(like, Coded):
            return next(loaded)
        stored = type(like)(next(loaded), next(loaded))
        # Above the limit if the scale is negative.
        self._note(jnp.max(_bits(stored.scales)))
        in_fours = stored.codes.shape[1] % 4 == 0
        return decoded_row(stored, self._number if in_fours else None)

    def encoded(
        self, like: Stored, xs: Sequence[Array], places: Sequence[Place]
    ) -> list[list[Array]]:
        """The arrays to store for the pieces of a row of a leaf.

        Args:
            like: how it is stored.
            xs: the pieces.
            places: where they are.
        """
        if not isinstance(like, Coded | Corrected):
            return [list(xs)]
        signed = isinstance(like, Signed8 | Corrected)
        sizes = [_bits(jnp.abs(x) if signed else x) for x in xs]
        most = jnp.max(_largest(sizes), axis=1, keepdims=True)
        self._note(jnp.max(most))
        if isinstance(like, Corrected):
            seed = _seed_of(like, self._seeds)
            noises = [_noise(like, seed, place) for place in places]
            pairs: list[tuple[Array, Any]] = list(zip(xs, noises, strict=True))
            if like.correction is None:
                return [[rounded_bfloat16(x, noise) for x, noise in pairs]]
            dtype = like.correction.dtype
            halves = [split_bfloat16(x, dtype, noise) for x, noise in pairs]
            return [list(part) for part in zip(*halves, strict=True)]
        largest = jax.lax.bitcast_convert_type(most, jnp.float32)
        encoded = self._shorter(partial(encoded_row, like.kind))
        rows = [encoded(x, largest) for x in xs]
        return [[row.codes for row in rows], [rows[0].scales]]

    def _note(self, bits: UInt32[Array, ""]) -> None:
        self._most = jnp.maximum(self._most, bits)


def exactly_decoded(like: Stored, loaded: Iterator[Array]) -> Array:
    """Elements of a leaf, from the next of the loaded arrays."""
    if isinstance(like, Corrected):
        return _next_of(like, loaded).decode()
    if not isinstance(like, Coded):
        return next(loaded)
    return type(like)(next(loaded), next(loaded)).decode()


def no_sizes(old: Sequence[Stored]) -> list[Float[Array, "1 1"]]:
    """What `exact_sizes` starts with."""
    coded = [x for x in old if isinstance(x, Coded)]
    return [jnp.zeros((1, 1), jnp.float32)] * (2 * len(coded))


def exact_sizes(
    old: Sequence[Stored], news: Sequence[Array], sizes: Sequence[Array]
) -> list[Array]:
    """The largest `sizes_of` of leaves in few bits, with those of one more piece.

    Args:
        old: how the leaves are stored.
        news: a piece of each.
        sizes: those of the pieces before.
    """
    pairs = zip(old, news, strict=True)
    now = [
        jnp.max(size, axis=1, keepdims=True)
        for was, x in pairs
        if isinstance(was, Coded)
        for size in sizes_of(was.kind, x)
    ]
    return [jnp.maximum(a, b) for a, b in zip(sizes, now, strict=True)]


def scales_of(old: Sequence[Stored], sizes: Sequence[Array]) -> list[Array]:
    """The scales of leaves in few bits.

    Args:
        old: how the leaves are stored.
        sizes: the `exact_sizes` of the row.
    """
    coded = [x for x in old if isinstance(x, Coded)]
    rows = zip(coded, sizes[::2], sizes[1::2], strict=True)
    return [scales_from(was.kind, most, special) for was, most, special in rows]


def exact_codes(
    old: Sequence[Stored],
    news: Sequence[Array],
    scales: Sequence[Array],
    seeds: Sequence[Array],
    place: Place,
) -> list[Array]:
    """The arrays to store for a piece of a row, except the scales.

    Args:
        old: how the leaves are stored.
        news: the piece of each.
        scales: those of leaves in few bits.
        seeds: those of leaves with corrections.
        place: where the piece is.
    """
    rest, draws = iter(scales), iter(seeds)
    parts: list[Array] = []
    for was, x in zip(old, news, strict=True):
        if isinstance(was, Coded):
            parts += [codes_of(was.kind, x, next(rest))]
        elif isinstance(was, Corrected):
            noise = _noise(was, _seed_of(was, draws), place)
            parts += _arrays_of(was.rounded(x, noise))
        else:
            parts += [x]
    return parts


def inside_only(
    old: Sequence[Stored], news: Sequence[Array], place: Place
) -> list[Array]:
    """A piece of each leaf; outside of the array, zero, which changes no scale."""
    inside = place.inside
    if inside is None:
        return list(news)
    zero = lambda x: jnp.where(inside, x, 0)
    pairs = zip(old, news, strict=True)
    return [zero(x) if isinstance(was, Coded | Corrected) else x for was, x in pairs]


def parts_of(x: Stored, shape: tuple[int, int]) -> list[Array]:
    """The arrays of a leaf, each as a matrix."""
    if isinstance(x, Corrected):
        return [part.reshape(shape) for part in _arrays_of(x)]
    if not isinstance(x, Coded):
        return [x.reshape(shape)]
    return [x.codes.reshape(shape), x.scales.reshape(shape[0], -1)]


def whole_of(x: Stored, parts: Iterator[Array]) -> Stored:
    """The inverse of `parts_of`, from the next of the new arrays."""
    if isinstance(x, Corrected):
        return _next_of(x, (part.reshape(x.shape) for part in parts))
    if not isinstance(x, Coded):
        return next(parts).reshape(x.shape)
    codes, scales = next(parts), next(parts)
    return type(x)(codes.reshape(x.codes.shape), scales.reshape(x.scales.shape))


def _largest(xs: Sequence[Array]) -> Array:
    result, *rest = xs
    for x in rest:
        result = jnp.maximum(result, x)
    return result


def _arrays_of(x: Corrected) -> list[Array]:
    """The arrays of weights; some have no corrections."""
    return [x.half] if x.correction is None else [x.half, x.correction]


def _next_of(like: Corrected, parts: Iterator[Array]) -> Corrected:
    """The inverse of `_arrays_of`, from the next of the arrays."""
    half = next(parts)
    return Corrected(half, None if like.correction is None else next(parts), like.seed)


def _seed_of(like: Corrected, seeds: Iterator[Array]) -> tuple[Array, Array] | None:
    return None if like.seed is None else (next(seeds), next(seeds))


def _noise(
    like: Corrected, seed: tuple[Array, Array] | None, place: Place
) -> Array | None:
    """What `dither` gives at a place."""
    if seed is None:
        return None
    dtype = like.noise_dtype
    row, first = (x.astype(jnp.uint32) for x in place.index)
    # Two or four neighbours share a hash, and a place begins with the first of them.
    share = np.uint32(32 // jnp.iinfo(dtype).bits)
    start = row * np.uint32(hashes_of_row(place.length, dtype)) + first // share
    return hashed(seed, start, place.column.astype(jnp.uint32), dtype)


def _bits(x: Float[Array, "..."]) -> UInt32[Array, "..."]:
    return jax.lax.bitcast_convert_type(x, jnp.uint32)
