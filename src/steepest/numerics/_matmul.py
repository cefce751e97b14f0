"""Matrix products in the precision that their use needs.

By default, GPUs and TPUs round the factors of a product of float32 matrices to 11 or 8
bits.
"""

from collections.abc import Sequence
from functools import partial
from math import log2
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Inexact

from ._symmetric import rows_gram


def exact_product(x: Inexact[Array, "m k"], y: Inexact[Array, "k n"]) -> Array:
    """`x y` with 16 bits of precision or more, for sums of squares and for bases.

    By default, GPUs and TPUs round both factors to 11 or 8 bits, and small eigenvalues
    are lost. On them, this is the sum of three products of halves: on an H200 the error
    is 1e-5 instead of 3e-4, in a third of the time of float32 (JAX 0.11.2).

    Args:
        x: a matrix.
        y: a matrix.
    """
    if _is_rounded(x) and _is_rounded(y):
        return jnp.matmul(x, y, precision=jax.lax.DotAlgorithmPreset.BF16_BF16_F32_X3)
    return jnp.matmul(x, y, precision=jax.lax.Precision.HIGHEST)


def product_error(x: Inexact[Array, "..."]) -> float:
    """The rounding error of `exact_product`, relative to the largest elements.

    Args:
        x: one of the factors.
    """
    return (100 if _is_rounded(x) else 4) * float(jnp.finfo(x.dtype).eps)


def half_error(x: Inexact[Array, "..."]) -> float:
    """Twice the rounding error of `rounded_to_half`, relative to the elements.

    Args:
        x: a matrix.
    """
    return 2.0**-10 if _is_halved(x) else 0.0


def exact_gram(x: Float[Array, "m n"]) -> Float[Array, "m m"]:
    """`x x^T` with 16 bits of precision or more.

    On a GPU, `x` is the sum of two halves in float16. Two products suffice, since the
    third is the transpose of the second: half the time of `exact_product`.

    Args:
        x: a real matrix.
    """
    if not _is_halved(x):
        return exact_product(x, x.T)
    x, scale = _moderate(x)
    high, low = _two_halves(x)
    cross = _half_product(high, low.T) / _LOW
    return scale * scale * (_half_product(high, high.T) + cross + cross.T)


class Rounded(NamedTuple):
    """A matrix `scale values`. On a GPU, `values` is in float16.

    Products of float16 matrices with sums in float32 are exact but for the sums, and
    nine times as fast as those of float32 on an H200.
    """

    values: Float[Array, "m n"]
    scale: Float[Array, ""]  # a power of 2

    @property
    def matrix(self) -> Float[Array, "m n"]:
        """The matrix in the dtype of `scale`."""
        return self.scale * self.values.astype(self.scale.dtype)

    @property
    def T(self) -> "Rounded":
        """The transpose."""
        return Rounded(self.values.T, self.scale)


def rounded_to_half(x: Float[Array, "m n"], size: float | None = None) -> Rounded:
    """`x`, rounded to 11 bits on a GPU.

    Args:
        x: a matrix.
        size: about its root mean square, if that is known. By default it is measured,
            which reads all of `x` once more.
    """
    if not _is_halved(x):
        return Rounded(x, jnp.ones((), x.dtype))
    x, scale = _moderate(x, size)
    return Rounded(_in_eleven_bits(x).astype(jnp.float16), scale)


def rounded_gram(x: Rounded) -> Float[Array, "m m"]:
    """`x x^T` of a rounded matrix, without further rounding but in the sums.

    Both factors are rounded alike. So the rounding makes no eigenvalue negative, and
    changes those near zero by its square: less than the sums do.

    Args:
        x: a rounded matrix.
    """
    if x.values.dtype != jnp.float16:
        return exact_product(x.values, x.values.T)
    return x.scale * x.scale * rows_gram(x.values)


def times_rounded(a: Float[Array, "k m"], x: Rounded) -> Float[Array, "k n"]:
    """`a x` with 16 bits of precision or more. On a GPU, `a` is the sum of two halves.

    Args:
        a: a matrix.
        x: a rounded matrix.
    """
    if x.values.dtype != jnp.float16:
        return exact_product(a, x.values)
    a, scale = _moderate(a)
    high, low = _two_halves(a)
    both = _half_product(high, x.values) + _half_product(low, x.values) / _LOW
    return scale * x.scale * both


def rounded_times(
    x: Rounded, a: Float[Array, "n k"], size: float | None = None
) -> Float[Array, "m k"]:
    """`x a` with 16 bits of precision or more. On a GPU, `a` is the sum of two halves.

    Args:
        x: a rounded matrix.
        a: a matrix.
        size: about the root mean square of `a`, if it is known.
    """
    if x.values.dtype != jnp.float16:
        return exact_product(x.values, a)
    a, scale = _moderate(a, size)
    high, low = _two_halves(a)
    both = _half_product(x.values, high) + _half_product(x.values, low) / _LOW
    return scale * x.scale * both


def rounded_product(x: Rounded, y: Rounded) -> Float[Array, "m n"]:
    """`x y` of two rounded matrices, without further rounding but in the sums.

    Args:
        x: a rounded matrix.
        y: a rounded matrix.
    """
    if x.values.dtype != jnp.float16:
        return exact_product(x.values, y.values)
    return x.scale * y.scale * _half_product(x.values, y.values)


def between_bases(
    left: Float[Array, "k m"] | None,
    xs: Sequence[Float[Array, "m n"]],
    right: Float[Array, "n l"] | None,
    size: float | None = None,
    any_size: bool = False,
) -> list[Float[Array, "k l"]]:
    """`left x right` for some matrices, in 11 bits of precision on a GPU.

    As by default, and faster: all of them are multiplied at once, and the results are
    rounded to float16 as well, which adds little to what rounding the factors changes.

    Args:
        left: an orthogonal matrix; `None` for the identity.
        xs: the matrices.
        right: an orthogonal matrix; `None` for the identity.
        size: their root mean square or more, if that is known. By default it is
            measured, which reads all of them once more. If it is given, the elements
            are limited, so that float16 can hold the products: to `size` times
            `2^15 / sqrt(m n)`.
        any_size: whether float32 may not hold the sum of their squares. It can, if they
            are `limited`, unless they are tiny: below 1e-19 they count as zeros.
    """
    if not _is_halved(xs[0]) or (left is None and right is None):
        return _one_by_one(left, xs, right)
    # Derivatives are those in float32: float16 cannot hold the slopes of `x / eps`.
    quick = jax.custom_jvp(partial(_side_by_side, size=size, any_size=any_size))
    quick.defjvp(lambda xs, along: jax.jvp(_one_by_one, xs, along))
    return quick(left, list(xs), right)


def _one_by_one(
    left: Array | None, xs: Sequence[Array], right: Array | None
) -> list[Array]:
    """`left x right` for some matrices."""
    xs = [x if left is None else left @ x for x in xs]
    return [x if right is None else x @ right for x in xs]


def _side_by_side(
    left: Array | None,
    xs: Sequence[Array],
    right: Array | None,
    size: float | None,
    any_size: bool,
) -> list[Array]:
    """The same in float16, for all of them at once."""
    half = lambda y: y.astype(jnp.float16)
    # Orthogonal matrices do not change the size of `x`, so it is measured once. No
    # element exceeds the norm, which float16 can hold: the root of the number of
    # elements. So no product needs results in float32.
    pairs = [_moderate(x, size, any_size) for x in xs]
    if size is not None:
        most = _MOST / max(xs[0].size, 1) ** 0.5
        pairs = [(jnp.clip(x, -most, most), scale) for x, scale in pairs]
    # Side by side, so that neither a product nor its result is copied.
    x = jnp.stack([half(x) for x, _ in pairs], axis=1)
    m, many, n = x.shape
    if left is not None:
        x = jnp.matmul(half(left), x.reshape(m, -1))
        m = len(x)
    if right is not None:
        x, n = jnp.matmul(x.reshape(-1, n), half(right)), right.shape[1]
    x = x.reshape(m, many, n)
    return [scale * x[:, k].astype(scale.dtype) for k, (_, scale) in enumerate(pairs)]


_MOST = 2.0**15  # about half of what float16 can hold
_LOW = 2.0**11  # the second half of a number in float16 is smaller by this factor


def _is_rounded(x: Inexact[Array, "..."]) -> bool:
    """Whether the device would round `x` in a product."""
    return x.dtype == jnp.float32 and jax.default_backend() != "cpu"


def _is_halved(x: Inexact[Array, "..."]) -> bool:
    """Whether products of float16 matrices replace those of `x`."""
    return _is_rounded(x) and jax.default_backend() == "gpu"


def _two_halves(x: Float[Array, "m n"]) -> tuple[Array, Array]:
    """Two matrices in float16: `x` is the first plus the second over `_LOW`."""
    high = _in_eleven_bits(x)
    return high.astype(jnp.float16), ((x - high) * _LOW).astype(jnp.float16)


def _in_eleven_bits(x: Float[Array, "m n"]) -> Float[Array, "m n"]:
    """`x`, rounded to the precision of float16.

    XLA would remove a conversion to float16 and back.
    """
    return jax.lax.reduce_precision(x, exponent_bits=5, mantissa_bits=10)


def _moderate(
    x: Float[Array, "m n"], size: float | None = None, any_size: bool = False
) -> tuple[Float[Array, "m n"], Float[Array, ""]]:
    """`x` over its root mean square, so that float16 can hold it, and that number.

    The number is rounded to a power of 2, so the division is exact.

    Args:
        x: a matrix.
        size: about its root mean square; by default it is measured.
        any_size: whether float32 may not hold the sum of its squares.
    """
    if size is not None:
        power = jnp.asarray(2.0 ** round(log2(size)), x.dtype)
        return x / power, power
    # Results do not depend on it. Its slope would be infinite for zeros.
    y = jax.lax.stop_gradient(x)
    mean = jnp.sqrt(jnp.mean(jnp.square(y)))
    if any_size:  # three sums in one pass, as in `frobenius`
        small, large = (jnp.mean(jnp.square(y * c)) for c in (_FAR, 1 / _FAR))
        small, large = jnp.sqrt(small) / _FAR, jnp.sqrt(large) * _FAR
        mean = jnp.where(mean < 1 / _FAR, small, mean)
        mean = jnp.where(jnp.isfinite(mean), mean, large)
    power = jax.lax.reduce_precision(mean, 8, 0)
    power = jnp.where(power > 0, power, 1)
    return x / power, power


_FAR = 2.0**60  # squares of float32 numbers underflow below 2^-63, overflow above 2^64


def _half_product(
    x: Float[Array, "m k"], y: Float[Array, "k n"]
) -> Float[Array, "m n"]:
    return jnp.matmul(x, y, preferred_element_type=jnp.float32)
