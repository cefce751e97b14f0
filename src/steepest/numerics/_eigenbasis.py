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

from ._cond import cond_under_vmap
from ._kernels import has_kernels, on_cuda
from ._matmul import (
    exact_product as times,
    half_error,
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
    a = _scaled(a)
    # Directions with smaller eigenvalues than the rounding errors keep their place.
    # Added to `a`: added to `x`, it would be read with its rows and columns swapped.
    norm = jnp.sqrt(jnp.sum(a * a))  # not below the largest eigenvalue
    a = a + product_error(a) * norm * _eye(a)
    # Transposed, so that a direction is a row: a permutation of rows is cheaper. A
    # basis that differs slightly from the last one is as good, so it is rounded: two
    # products of float16 instead of three of bfloat16, and the result is as precise.
    # The mean eigenvalue is 1, so no element is above the side: float16 can hold it.
    x = rounded_times(_rounded_rows(basis.T), a, size=1.0)
    order = jnp.argsort(-jnp.sum(basis.T * x, axis=1))  # about the eigenvalues
    rows = _told_apart(_prepared(x), basis.T)
    return _orthogonalized(rows[order], basis.T[order])[jnp.argsort(order)].T


def _told_apart(rows: Square, old: Square) -> Square:
    """Rows of length 1 that are not parallel when they are rounded.

    If a factor has a single direction, its rows are parallel but for a little of the
    old ones, which rounding to float16 would remove.
    """
    error = half_error(rows)
    return rows + error * old if error else rows


def orthonormal(x: Square) -> Square:
    """The Q of the QR decomposition of `x`, with a positive diagonal of R.

    Args:
        x: a matrix. Columns may be almost parallel, and have any length but zero.
    """
    return _orthogonalized(_prepared(x.T), x.T).T


_MOST_PASSES = 12
# Up to this error, a Newton step more than halves it. If it does not, the norm of the
# error is far above that of its rows.
_NEAR = 0.5


class _Pass(NamedTuple):
    """The rows after some passes."""

    rows: Rounded
    gap: Rounded  # `I - x x^T` of these rows
    error: Float[Array, ""]  # the largest norm of a row of it
    most: Float[Array, ""]  # if the error is above, the next pass is a factorization
    shift: Float[Array, ""]  # for it
    passes: Int[Array, ""]

    def with_rows(self, x: Square, most: float | Array) -> "_Pass":
        """The state after one more pass, if it has made these rows."""
        # The basis is approximate anyway. That of the rounded rows is as good.
        rows = _rounded_rows(x)
        gap = _eye(x) - rounded_gram(rows)
        error = jnp.sqrt(jnp.max(jnp.sum(gap * gap, axis=1)))
        real = jnp.isfinite(error)
        pick = lambda new, old: jnp.where(real, new, old)
        return _Pass(
            jax.tree.map(pick, rows, self.rows),
            jax.tree.map(pick, _rounded_gap(gap), self.gap),
            pick(error, self.error),
            jnp.asarray(most, x.dtype),
            pick(_least_shift(x), 16 * self.shift),
            self.passes + 1,
        )


def _orthogonalized(x: Square, otherwise: Square) -> Square:
    """The rows of `x`, which are `_prepared`, orthogonalized one after the other.

        x <- C^-1 x           C C^T = x x^T + s I
        x <- x + (I - x x^T) x / 2                           until x x^T is about I

    The Cholesky factor `C` of a matrix of squares loses half of the digits. The shift
    `s` keeps it real, and makes rows shorter that almost depend on those before. Steps
    of Newton's method make them longer: each squares the error, in a fraction of the
    time of a factorization. They change the other rows as well, but little, since these
    have small errors. If rows are too short for that, or `C` is not real, they are
    factored once more; in the second case, with a larger shift.

    On a CPU, LAPACK's QR decomposition of a small matrix is as fast, and compiles
    sooner.

    Args:
        x: a matrix. Rows may be almost parallel.
        otherwise: the result if no pass comes near.
    """
    if _is_small(x):
        return _rows_by_lapack(x)
    one, shift = jnp.ones((), x.dtype), jnp.asarray(_least_shift(x), x.dtype)
    gap, none = _rounded_gap(jnp.zeros_like(x)), jnp.zeros((), jnp.int32)
    start = _Pass(_rounded_rows(x), gap, one, one, shift, none)
    # The last step squares an error of `enough`: to below 0.0001 in float32.
    enough = float(jnp.finfo(x.dtype).eps) ** 0.25 / 2

    def is_rough(state: _Pass) -> Array:
        return (state.error > enough) & (state.passes < _MOST_PASSES)

    def again(state: _Pass) -> _Pass:
        return cond_under_vmap(state.error > state.most, _factored, _stepped, state)

    # The first pass is not in the loop, before whose passes a GPU waits for the host.
    last = jax.lax.while_loop(is_rough, again, _factored(start))
    return jnp.where(last.error < _NEAR, _newton_step(last), otherwise)


def _factored(state: _Pass) -> _Pass:
    gram = rounded_gram(state.rows)
    x = _divided(gram + state.shift * _eye(gram), state.rows)
    return state.with_rows(x, _NEAR)


def _stepped(state: _Pass) -> _Pass:
    return state.with_rows(_newton_step(state), state.error / 2)


def _newton_step(state: _Pass) -> Square:
    return state.rows.matrix + rounded_product(state.gap, state.rows) / 2


def _rounded_gap(x: Square) -> Rounded:
    """Numbers of 1 or less, most of them far below, rounded to 11 bits on a GPU."""
    return rounded_to_half(x, size=2.0**-14)


def _least_shift(x: Square) -> float:
    return 100 * float(jnp.finfo(x.dtype).eps)


def _rounded_rows(x: Square) -> Rounded:
    """Rows of length 1 or less, rounded to 11 bits on a GPU."""
    return rounded_to_half(x, size=max(1, x.shape[1]) ** -0.5)


def _is_small(x: Square) -> bool:
    return len(x) <= _BLOCK and short_programs()


def _prepared(x: Square) -> Square:
    """`x` with rows of length 1; LAPACK takes rows of any length."""
    if _is_small(x):
        return x
    return x / jnp.sqrt(jnp.sum(x * x, axis=1, keepdims=True))


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


def _eye(a: Square) -> Square:
    return jnp.eye(len(a), dtype=a.dtype)
