"""Bases of eigenvectors that follow a slowly changing symmetric matrix.

A decomposition from scratch is slow on accelerators, and the last basis is almost right
already. So a basis is corrected: by one step of orthogonal iteration, or by rotations.
Both consist of matrix products and Cholesky factorizations, which run on whole stacks.

Golub and van Loan, Matrix computations, 2013, sections 8.2 and 8.4
Fukaya et al., Shifted Cholesky QR for computing the QR factorization of ill-conditioned
matrices, 2020, doi:10.1137/18M1218212
"""

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
from jax.custom_batching import custom_vmap
from jax.sharding import AxisType
from jaxtyping import Array, Float, Int

from ._kernels import has_kernels, on_cuda
from ._matmul import (
    exact_product as times,
    product_error,
    Rounded,
    rounded_gram,
    rounded_product,
    rounded_times,
    rounded_to_half,
    times_rounded,
)
from ._sharding import meshes_near
from ._small_cholesky import SIDES, small_inverse_cholesky
from ._spectral import spectral_norm
from ._xla import short_programs

Square: TypeAlias = Float[Array, "d d"]


def eigenbasis(a: Square) -> Square:
    """The eigenvectors of `a`, from scratch. Those of large eigenvalues come first.

    Args:
        a: symmetric and positive semidefinite. For zeros, the result is the identity.
    """
    _, vectors = jnp.linalg.eigh(_scaled(a))
    # `eigh` sorts upwards. The identity for zeros, where any basis would do.
    return jnp.where(jnp.trace(a) > 0, vectors[:, ::-1], _eye(a))


def iterated_basis(a: Square, basis: Square) -> Square:
    """One step of orthogonal iteration: the Q of the QR decomposition of `a basis`.

    The directions are orthogonalized in the order of their eigenvalues, largest first.
    The columns of the result have the order of the columns of `basis`, so that memory
    in the coordinates of `basis` still fits.

    Args:
        a: symmetric and positive semidefinite.
        basis: orthogonal.
    """
    # Transposed, so that a direction is a row: a permutation of rows is cheaper. A
    # basis that differs slightly from the last one is as good, so it is rounded: two
    # products of float16 instead of three of bfloat16, and the result is as precise.
    x = rounded_times(rounded_to_half(basis.T), _scaled(a))
    sizes = jnp.sum(basis.T * x, axis=1)  # about the eigenvalues
    # Directions with smaller eigenvalues than the rounding errors keep their place.
    x = x + product_error(x) * jnp.max(sizes) * basis.T
    order = jnp.argsort(-sizes)
    return orthonormal_rows(x[order])[jnp.argsort(order)].T


def orthonormal(x: Square) -> Square:
    """The Q of the QR decomposition of `x`, with a positive diagonal of R.

    Args:
        x: a matrix. Columns may be almost parallel, and have any length but zero.
    """
    return orthonormal_rows(x.T).T


_MOST_PASSES = 12


class _Pass(NamedTuple):
    """The rows after some passes."""

    x: Square
    error: Float[Array, ""]  # of `x x^T`
    shift: Float[Array, ""]  # for the next pass
    passes: Int[Array, ""]


def orthonormal_rows(x: Square) -> Square:
    """The rows of `x`, orthogonalized one after the other.

        x <- C^-1 x           C C^T = x x^T + s I,           until x x^T is about I
        x <- x + (I - x x^T) x / 2

    The Cholesky factor `C` of a matrix of squares loses half of the digits. The shift
    `s` keeps it real, and another pass recovers the digits. One pass is enough if
    eigenvalues differ by less than 100 times, two up to 10,000 times. The last line
    squares the error that remains, in a fraction of the time of a pass. If `C` is not
    real, since rows depend on each other, the pass is repeated with a larger shift.

    On a CPU, LAPACK's QR decomposition of a small matrix is as fast, and compiles
    sooner.

    Args:
        x: a matrix. Rows may be almost parallel, and have any length but zero.
    """
    if len(x) <= _BLOCK and short_programs():
        return _rows_by_lapack(x)
    eps = float(jnp.finfo(x.dtype).eps)
    # The last line squares an error of `enough`: to below 0.0001 in float32.
    shift, enough = 100 * eps, eps**0.25 / 2

    def one_pass(state: _Pass) -> _Pass:
        # The basis is approximate anyway. That of the rounded rows is as good.
        rows = rounded_to_half(state.x)
        new = _divided(rounded_gram(rows) + state.shift * _eye(x), rows)
        # The new `x x^T` is `I - shift C^-1 C^-T`, but for rounding.
        error = jnp.max(1 - jnp.sum(new * new, axis=1))
        real = jnp.isfinite(error)
        return _Pass(
            jnp.where(real, new, state.x),
            jnp.where(real, error, state.error),
            jnp.where(real, shift, 16 * state.shift),
            state.passes + 1,
        )

    def is_rough(state: _Pass) -> Array:
        return (state.error > enough) & (state.passes < _MOST_PASSES)

    one, first = jnp.ones((), x.dtype), jnp.asarray(shift, x.dtype)
    start = _Pass(_normalized(x), one, first, jnp.zeros((), jnp.int32))
    rows = rounded_to_half(jax.lax.while_loop(is_rough, one_pass, start).x)
    error = rounded_to_half(_eye(x) - rounded_gram(rows))
    return _normalized(rows.matrix + rounded_product(error, rows) / 2)


def _rows_of_qr(x: Square) -> Square:
    """The same by LAPACK."""
    q, r = jnp.linalg.qr(x.T)
    # A slice compiles sooner than the gather of `jnp.diagonal`.
    d = jax.lax.slice(r.reshape(r.size), (0,), (r.size,), (len(r) + 1,))
    return (q * jnp.where(d < 0, -1, 1)[None, :]).T


@jax.custom_jvp
def _rows_by_lapack(x: Square) -> Square:
    """The same by LAPACK, one matrix after the other under `vmap`.

    A LAPACK call of JAX shares out a batch to the threads of XLA's pool, and waits for
    them inside a thread of that pool. If there are as many calls at once as threads,
    all wait forever: two stacks of different shapes are enough on two cores (JAX
    0.10.2).
    """
    return _one_by_one(x)


@_rows_by_lapack.defjvp
def _(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    return jax.jvp(_rows_of_qr, primals, tangents)  # `custom_vmap` has no transpose


@custom_vmap
def _one_by_one(x: Square) -> Square:
    return _rows_of_qr(x)


@_one_by_one.def_vmap
def _(size: int, batched: Sequence[bool], x: Array) -> tuple[Array, bool]:
    kinds = [kind for mesh in meshes_near(x) for kind in mesh.axis_types]
    if any(kind != AxisType.Manual for kind in kinds):
        # In a loop over matrices that the compiler shards, each would be gathered.
        return jax.vmap(_rows_of_qr)(x), True
    return jax.lax.map(_one_by_one, x), True


def _divided(a: Square, x: Rounded) -> Square:
    """`C^-1 x`, where `C C^T = a` and `C` is lower triangular.

    Halves of a large `a` at a time: the inverse of `C` is zero above the diagonal, and
    the block below is never formed. That saves a quarter of the multiplications.

    Args:
        a: symmetric and positive definite.
        x: a matrix with as many rows.
    """
    if len(a) <= 2 * _BLOCK:
        return times_rounded(inverse_cholesky(a), x)
    top, corner, bottom = _halves(a)
    half = len(top)
    above, below = (x._replace(values=y) for y in (x.values[:half], x.values[half:]))
    first = times_rounded(top, above)
    rest = rounded_to_half(below.matrix - times(corner, first))
    return jnp.concatenate([first, times_rounded(bottom, rest)])


# Below this side, the library's triangular solve is faster than products of blocks.
_BLOCK = 256


def inverse_cholesky(a: Square) -> Square:
    """`C^-1`, where `C C^T = a` and `C` is lower triangular.

    Halves of `a` at a time, so that almost all work is in matrix products.

    Args:
        a: symmetric and positive definite.
    """
    n = len(a)
    if n <= _block(a):
        if n in SIDES and _has_kernels_for(a):
            return on_cuda(small_inverse_cholesky, _by_solving, a)
        return _by_solving(a)
    top, corner, bottom = _halves(a)
    corner = -times(bottom, times(corner, top))
    above = jnp.zeros((len(top), len(bottom)), a.dtype)
    return jnp.block([[top, above], [corner, bottom]])


def _halves(
    a: Square,
) -> tuple[Float[Array, "k k"], Float[Array, "m k"], Float[Array, "m m"]]:
    """The inverses of the blocks of `C` on the diagonal, and the block below."""
    half = -(-len(a) // (2 * _block(a))) * _block(a)
    top = inverse_cholesky(a[:half, :half])
    corner = times(a[half:, :half], top.T)
    bottom = inverse_cholesky(a[half:, half:] - times(corner, corner.T))
    return top, corner, bottom


def _block(a: Square) -> int:
    """The largest side whose factor is inverted at once."""
    return max(SIDES) if _has_kernels_for(a) else _BLOCK


def _has_kernels_for(a: Square) -> bool:
    return a.dtype == jnp.float32 and has_kernels()


def _by_solving(a: Square) -> Square:
    c = jnp.linalg.cholesky(a)
    return jax.scipy.linalg.solve_triangular(c, _eye(a), lower=True)


def rotated_basis(a: Square, basis: Square) -> Square:
    """Rotate each pair of directions towards eigenvectors of `a`, all pairs at once.

        B = basis^T a basis                        tan(2 K_ij) = 2 B_ij / (B_jj - B_ii)
        basis <- basis (I + K) (I - K^2)^(-1/2)    K scaled to a norm of at most 1

    This is the first-order correction of eigenvectors. It only consists of products. If
    `a` changes little between two steps, it is closer to the eigenvectors than
    `iterated_basis`; after large changes it is further.

    Args:
        a: symmetric and positive semidefinite.
        basis: orthogonal, and not far from eigenvectors of `a`.
    """
    b = times(basis.T, times(_scaled(a), basis))
    d = jnp.diagonal(b)
    gap = d[None, :] - d[:, None]
    angle = jnp.arctan2(2 * jnp.abs(b), jnp.abs(gap)) / 2
    # Antisymmetric also where two eigenvalues are equal: the order decides.
    later = jnp.arange(len(d))[None, :] < jnp.arange(len(d))[:, None]
    sign = jnp.where((gap > 0) | ((gap == 0) & later), 1, -1)
    # Rounding errors must not rotate directions with equal eigenvalues.
    some = (jnp.abs(b) > product_error(b) * jnp.max(d)) & (_eye(b) == 0)
    k = jnp.where(some, jnp.sign(b) * sign * angle, 0)
    return _polished(times(basis, _rotation(k)))


def _rotation(k: Square) -> Square:
    """`(I + K) (I - K^2)^(-1/2)` for an antisymmetric `K`, scaled to a norm of 1."""
    k = k / jnp.maximum(1, 1.05 * spectral_norm(k))  # which may be a little low
    square = -times(k, k)  # eigenvalues from 0 to 1
    # A polynomial for (1 + s)^(-1/2), at most 0.5% off for s in [0, 1.1].
    root = _eye(k) - 0.441876 * square + 0.148494 * times(square, square)
    return root + times(k, root)


def _polished(q: Square) -> Square:
    """One step of Newton-Schulz towards orthogonal columns: squares the error."""
    return 1.5 * q - 0.5 * times(q, times(q.T, q))


def _scaled(a: Square) -> Square:
    """`a` over its mean eigenvalue; the identity if `a` is zero."""
    mean = jnp.trace(a) / max(len(a), 1)
    some = mean > 0
    return jnp.where(some, a / jnp.where(some, mean, 1), _eye(a))


def _normalized(x: Square) -> Square:
    """`x` with rows of length 1."""
    return x / jnp.sqrt(jnp.sum(x * x, axis=1, keepdims=True))


def _eye(a: Square) -> Square:
    return jnp.eye(len(a), dtype=a.dtype)
