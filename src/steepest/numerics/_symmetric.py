"""Products of matrices that are known to be symmetric.

cuBLAS computes all of `x x^T`. On a GPU of NVIDIA, a kernel computes the tiles on and
below the diagonal, and writes each of them twice. So a product of half-precision
matrices takes 70 to 80% of the time (H200, JAX 0.11.2): for 8 of 1600 x 6400, 0.26 ms
instead of 0.36; for 8 squares of 1600, 0.08 ms instead of 0.10, and with a polynomial
0.10 ms instead of 0.13.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import Array, Float, Inexact

from ..core import Real
from ._half import promoted
from ._kernels import has_kernels, on_cuda, triton

Square: TypeAlias = Inexact[Array, "side side"]
Polynomial: TypeAlias = tuple[Real, Real, Real] | Inexact[Array, "3"]  # (a, b, c)

_HALVES = jnp.float16, jnp.bfloat16
_LEAST = 1024  # cuBLAS is as fast for smaller sides
_LONG = 4096  # sums of as many products are faster in larger tiles


def symmetric_gram(x: Inexact[Array, "m n"]) -> Square:
    """The smaller of `x x^H` and `x^H x`.

    Args:
        x: a matrix.
    """
    tall = x.shape[0] > x.shape[1]
    plain = (lambda x: x.conj().T @ x) if tall else (lambda x: x @ x.conj().T)
    long, side = max(x.shape), min(x.shape)
    tiles = _tiles(x.dtype, side, long)
    if tiles is None:
        return plain(x)
    kernel = lambda x: in_triangle(_kept, x, x, tiles=tiles, tall=tall, dtype=x.dtype)
    return on_cuda(kernel, plain, x)


def symmetric_product(x: Square, y: Square) -> Square:
    """`x y` for symmetric matrices that commute.

    Args:
        x: a symmetric matrix.
        y: a symmetric matrix, such as a polynomial of `x`.
    """
    tiles = _tiles(x.dtype, len(x), len(x))
    if tiles is None:
        return x @ y
    kernel = lambda x, y: in_triangle(_kept, x, y, tiles=tiles, dtype=x.dtype)
    return on_cuda(kernel, lambda x, y: x @ y, x, y)


def symmetric_polynomial(x: Square, row: Polynomial) -> Square:
    """`a I + b x + c x^2` for a symmetric matrix.

    One pass over a small matrix, in float32 or wider.

    Args:
        x: a symmetric matrix.
        row: `(a, b, c)`.
    """

    def plain(x: Square) -> Square:
        a, b, c = row
        square = x @ x
        wide = promoted(x, jnp.float32)
        one = jnp.eye(len(x), dtype=wide)
        polynomial = a * one + b * x.astype(wide) + c * square.astype(wide)
        return polynomial.astype(x.dtype)

    tiles = _tiles(x.dtype, len(x), len(x), _POLYNOMIAL)
    if tiles is None or not isinstance(row, tuple):
        return plain(x)
    last = partial(_polynomial, row)
    kernel = lambda x: in_triangle(last, x, x, x, tiles=tiles, dtype=x.dtype)
    return on_cuda(kernel, plain, x)


def rows_gram(x: Float[Array, "m n"]) -> Float[Array, "m m"]:
    """`x x^T` of a matrix in half precision, in float32.

    Args:
        x: a matrix.
    """
    plain = lambda x: jnp.matmul(x, x.T, preferred_element_type=jnp.float32)
    m, n = x.shape
    tiles = _tiles(x.dtype, m, n, _FLOAT32)
    if tiles is None:
        return plain(x)
    kernel = lambda x: in_triangle(_kept, x, x, tiles=tiles, dtype=jnp.float32)
    return on_cuda(kernel, plain, x)


def adds_in_triangle(dtype: DTypeLike, side: int, long: int) -> bool:
    """Whether `plus_gram` can compute this product, and should.

    Args:
        dtype: the dtype of the matrix.
        side: the side of the result.
        long: the number of terms in a sum.
    """
    tiles = _ADDED
    # A tile that overlaps with another one would be added twice.
    divides = side % tiles.rows == 0 and side % tiles.columns == 0
    fits = divides and side >= _LEAST and tiles.fit(side, long)
    return dtype in _HALVES and fits and has_kernels()


def plus_gram(
    old: Float[Array, "d d"], weights: Float[Array, "2"], x: Float[Array, "m n"]
) -> Float[Array, "d d"]:
    """`weights[0] old + weights[1] x x^T`, or with `x^T x`, if that has the shape.

    On a GPU of NVIDIA, a kernel overwrites `old`.

    Args:
        old: symmetric, in float32.
        weights: two numbers.
        x: a matrix in half precision, for which `adds_in_triangle` holds.
    """
    tall = len(old) != len(x)

    def plain(old: Array, weights: Array, x: Array) -> Array:
        x = x.T if tall else x
        gram = jnp.matmul(x, x.T, preferred_element_type=jnp.float32)
        return weights[0] * old + weights[1] * gram

    def kernel(old: Array, weights: Array, x: Array) -> Array:
        options = {"tiles": _ADDED, "tall": tall, "dtype": old.dtype}
        return in_triangle(_plus, x, x, weights, old, in_place=True, **options)

    return on_cuda(kernel, plain, old, weights, x)


class Tiles(NamedTuple):
    """How the result is divided among the programs of a kernel."""

    rows: int
    columns: int
    inner: int  # terms of the sums that are loaded at once
    warps: int
    stages: int  # loads under way at once

    def pairs(self, side: int) -> np.ndarray:
        """The tiles that cover a square of this side, on and below the diagonal."""
        down, across = -(-side // self.rows), -(-side // self.columns)
        below = lambda i, j: j * self.columns < (i + 1) * self.rows
        found = [(i, j) for i in range(down) for j in range(across) if below(i, j)]
        return np.array(found, np.int32)

    def fit(self, side: int, long: int) -> bool:
        """Whether they can cover a square of this side with sums of `long` terms."""
        return (
            side >= max(self.rows, self.columns)
            and side % 16 == 0  # else, Triton would load single elements
            and long % self.inner == 0
        )


# Of 128 or 256 rows and columns, 32 or 64 terms, 4 or 8 warps and 2 to 4 stages, these
# are the fastest on an H200: for sums of many terms, of few, and with a polynomial.
_LONG_SUMS, _SHORT_SUMS = Tiles(128, 256, 64, 8, 3), Tiles(128, 128, 64, 4, 3)
_POLYNOMIAL, _FLOAT32 = Tiles(128, 128, 64, 8, 4), Tiles(128, 128, 64, 8, 3)
_ADDED = _FLOAT32


def _tiles(
    dtype: DTypeLike, side: int, long: int, short: Tiles | None = None
) -> Tiles | None:
    """The tiles for a product; `None` if the kernel does not help."""
    # A matrix with longer columns than rows would be transposed first.
    if dtype not in _HALVES or not _LEAST <= side <= long or not has_kernels():
        return None
    tiles = short or (_LONG_SUMS if long >= _LONG else _SHORT_SUMS)
    return tiles if tiles.fit(side, long) else None


class Place(NamedTuple):
    """A tile of a result."""

    rows: Any  # the first
    columns: Any  # the first
    shape: tuple[int, int]

    @property
    def slices(self) -> tuple[Any, Any]:
        """Its rows and columns."""
        from jax.experimental import pallas as pl

        return pl.ds(self.rows, self.shape[0]), pl.ds(self.columns, self.shape[1])

    @property
    def diagonal(self) -> Array:
        """Which elements are on the diagonal."""
        iota = partial(jax.lax.broadcasted_iota, jnp.int32, self.shape)
        return self.rows + iota(0) == self.columns + iota(1)


def _kept(tile: Array, place: Place) -> Array:
    """The product itself."""
    del place
    return tile


def _polynomial(
    row: tuple[Real, Real, Real], tile: Array, place: Place, x: Any
) -> Array:
    """`a I + b x + c tile`."""
    a, b, c = row
    x = triton().load(x.at[place.slices]).astype(jnp.float32)
    return jnp.where(place.diagonal, a, 0.0) + b * x + c * tile


def _plus(tile: Array, place: Place, weights: Any, old: Any) -> Array:
    """`weights[0] old + weights[1] tile`."""
    x = triton().load(old.at[place.slices])
    return weights[0] * x + weights[1] * tile


def in_triangle(
    last: Callable[..., Array],
    x: Float[Array, "m k"],
    y: Float[Array, "m k"],
    *others: Array,
    tiles: Tiles,
    dtype: DTypeLike,
    tall: bool = False,
    in_place: bool = False,
    interpret: bool = False,
) -> Square:
    """`last(x y^T)` for a symmetric product, in one kernel.

    Args:
        last: `(tile, place, *others) -> tile`: what to do with a tile of the product.
        x: a matrix.
        y: a matrix of the same shape.
        others: more arrays for `last`.
        tiles: how the result is divided.
        dtype: the dtype of the result.
        tall: whether to compute `x^T y` instead.
        in_place: whether the result overwrites the last of `others`.
        interpret: whether to run without a GPU, for tests.
    """
    from jax.experimental import pallas as pl

    load, side, long = triton().load, x.shape[tall], x.shape[not tall]
    assert tiles.fit(side, long)
    pairs = tiles.pairs(side)

    def start(tile: Array, size: int) -> Array:
        # The last tile overlaps with the one before, rather than reach outside.
        return pl.multiple_of(jnp.minimum(tile * size, side - size), 16)

    def kernel(down: Any, across: Any, x: Any, y: Any, *refs: Any) -> None:
        *others, result = refs
        me = pl.program_id(0)
        i, j = start(down[me], tiles.rows), start(across[me], tiles.columns)
        rows, columns = pl.ds(i, tiles.rows), pl.ds(j, tiles.columns)

        def add(step: Array, tile: Array) -> Array:
            terms = pl.ds(step * tiles.inner, tiles.inner)
            if tall:
                return tile + _dot(
                    load(x.at[terms, rows]).T, load(y.at[terms, columns])
                )
            return tile + _dot(load(x.at[rows, terms]), load(y.at[columns, terms]).T)

        shape = tiles.rows, tiles.columns
        zeros = jnp.zeros(shape, jnp.float32)
        tile = jax.lax.fori_loop(0, long // tiles.inner, add, zeros)
        tile = last(tile, Place(i, j, shape), *others).astype(dtype)
        triton().store(result.at[rows, columns], tile)
        triton().store(result.at[columns, rows], tile.T)

    return pl.pallas_call(
        kernel,
        out_shape=jax.ShapeDtypeStruct((side, side), dtype),
        grid=(len(pairs),),
        input_output_aliases={3 + len(others): 0} if in_place else {},
        compiler_params=triton().CompilerParams(
            num_warps=tiles.warps, num_stages=tiles.stages
        ),
        interpret=interpret,
        name="in_triangle",
    )(jnp.asarray(pairs[:, 0]), jnp.asarray(pairs[:, 1]), x, y, *others)


def _dot(x: Array, y: Array) -> Array:
    return triton().dot(x, y)
