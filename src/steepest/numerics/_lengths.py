"""Norms of one array: exactly zero at zero, with gradient zero there."""

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float, Inexact

from ..core import MeshAxes
from ._devices import max_over, parts_over, split_over, sum_over
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

    Elements are divided by the largest one first, so that squares neither overflow nor
    underflow.
    """
    last, where = tuple(range(-ndim, 0)), split_over(axes, x)
    top = jnp.max(jnp.abs(jax.lax.stop_gradient(x)), last, keepdims=True, initial=0)
    top = max_over(where, top)
    top = jnp.where(top > 0, top, 1)
    unit = x / top.astype(x.dtype)
    total = sum_over(where, jnp.sum(abs_sq(unit), axis=last, keepdims=True))
    return top * sqrt_or_zero(total)


def rms(x: Inexact[Array, "..."], axes: MeshAxes | None = None) -> Float[Array, ""]:
    """The root mean square; 0 for an empty array."""
    size = x.size * parts_over(split_over(axes, x))
    return sqrt_or_zero(sum_of_squares(x, axes) / max(size, 1))


def squares(x: ArrayLike) -> Float[Array, "..."]:
    """`|x|^2` of an array of any dtype, in float32 or wider."""
    x = jnp.asarray(x)
    return abs_sq(x if jnp.iscomplexobj(x) else x.astype(wide_dtype([x])))
