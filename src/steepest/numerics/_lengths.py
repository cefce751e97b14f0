"""Norms of one array: exactly zero at zero, with gradient zero there."""

import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float, Inexact

from ..core import MeshAxes
from ._devices import parts_over, split_over, sum_over
from ._moments import abs_sq
from ._norms import sum_of_squares
from ._precision import wide_dtype
from ._xla import sqrt_or_zero


def length(x: Inexact[Array, "..."], axes: MeshAxes | None = None) -> Float[Array, ""]:
    """`|x|`, the Euclidean norm over all devices."""
    return sqrt_or_zero(sum_of_squares(x, axes))


def norms(
    x: Inexact[Array, "..."], ndim: int, axes: MeshAxes | None = None
) -> Float[Array, "..."]:
    """The norms over the last `ndim` axes, which keep the size 1, over all devices.

    Squares neither overflow nor underflow: there are three sums, for small, ordinary
    and large numbers, in one pass, as in `polar`.
    """
    far = 2.0 ** (5 * jnp.finfo(x.dtype).maxexp // 8)
    last, where = tuple(range(-ndim, 0)), split_over(axes, x)
    scales = 1.0, far, 1 / far
    sums = [jnp.sum(abs_sq(x * c), axis=last, keepdims=True) for c in scales]
    sums = sum_over(where, sums)
    is_small, is_large = sums[0] <= 1 / far, ~jnp.isfinite(sums[0])
    pick = lambda a, b, c: jnp.where(is_small, b, jnp.where(is_large, c, a))
    return sqrt_or_zero(pick(*sums)) / pick(*scales)


def rms(x: Inexact[Array, "..."], axes: MeshAxes | None = None) -> Float[Array, ""]:
    """The root mean square; 0 for an empty array."""
    size = x.size * parts_over(split_over(axes, x))
    return sqrt_or_zero(sum_of_squares(x, axes) / max(size, 1))


def squares(x: ArrayLike) -> Float[Array, "..."]:
    """`|x|^2` of an array of any dtype, in float32 or wider."""
    x = jnp.asarray(x)
    return abs_sq(x if jnp.iscomplexobj(x) else x.astype(wide_dtype([x])))
