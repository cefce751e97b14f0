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
    """The norms over the last `ndim` axes, which keep the size 1, over all devices."""
    return norms_along(x, tuple(range(-ndim, 0)), axes)


def norms_along(
    x: Inexact[Array, "..."],
    along: int | tuple[int, ...] | None,
    axes: MeshAxes | None = None,
) -> Float[Array, "..."]:
    """The norms along some axes, which keep the size 1, over all devices.

    Elements are divided by the largest one first, so that squares neither overflow nor
    underflow.

    Args:
        x: an array.
        along: the axes; `None` for all. Along no axes, these are absolute values.
        axes: the mesh axes to sum over inside `jax.shard_map`.
    """
    where = split_over(axes, x)
    top = jnp.max(jnp.abs(jax.lax.stop_gradient(x)), along, keepdims=True, initial=0)
    tiny = float(jnp.finfo(top.dtype).tiny)
    # Neither it nor its inverse is rounded to zero.
    top = jnp.clip(max_over(where, top), tiny, 0.25 / tiny)
    # Not `x / top`: in the derivative, XLA would divide by `top * top`, perhaps 0.
    unit = x * (1 / top).astype(x.dtype)
    total = sum_over(where, jnp.sum(abs_sq(unit), axis=along, keepdims=True))
    return top * sqrt_or_zero(total)


def rms(x: Inexact[Array, "..."], axes: MeshAxes | None = None) -> Float[Array, ""]:
    """The root mean square; 0 for an empty array."""
    size = x.size * parts_over(split_over(axes, x))
    return sqrt_or_zero(sum_of_squares(x, axes) / max(size, 1))


def squares(x: ArrayLike) -> Float[Array, "..."]:
    """`|x|^2` of an array of any dtype, in float32 or wider."""
    x = jnp.asarray(x)
    return abs_sq(x if jnp.iscomplexobj(x) else x.astype(wide_dtype([x])))
