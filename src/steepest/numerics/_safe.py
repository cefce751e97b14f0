"""Norms with a floor and counts with a ceiling, with finite derivatives."""

from collections.abc import Callable

import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Num

from .. import check
from ..core import Real
from ._half import at_least_float32, promoted
from ._lengths import rms


def safe_norm(
    x: ArrayLike,
    min_norm: Real,
    ord: int | float | str | None = None,
    axis: int | tuple[int, ...] | None = None,
    keepdims: bool = False,
) -> Num[Array, "..."]:
    """`max(norm(x), min_norm)`, with gradient 0 where the norm is at most `min_norm`.

    The gradient of a norm at zero is NaN; here it is zero. Half precision is computed
    in float32, so that its squares do not overflow.

    Inside `jax.shard_map` it is the norm of one device's shard: `tree.norm` takes an
    `axis_name`.

    Args:
        x: an array.
        min_norm: the smallest norm that is returned.
        ord: the order of the norm, such as 1, `inf` or `"nuc"`; by default 2 for
            vectors, and the Frobenius norm for matrices.
        axis: the axis of vectors, or the two axes of matrices, whose norms are taken;
            by default all axes.
        keepdims: whether to keep the axes, with size one.
    """
    name = "safe_norm"
    (x,) = check.array(name, x=x)

    def length(x: Array, keepdims: bool = keepdims) -> Array:
        try:
            return jnp.linalg.norm(x, ord=ord, axis=axis, keepdims=keepdims)
        except (TypeError, ValueError):
            raise check.WrongArgument(
                f"{name}: ord is {ord!r}, axis is {axis!r} and x has shape {x.shape}, "
                "expected arguments that `jnp.linalg.norm` accepts."
            ) from None

    def safe_length(x: Array) -> Array:
        zero = length(x, keepdims=True) == 0
        some = length(jnp.where(zero, 1, x))
        return jnp.where(zero.reshape(some.shape), 0, some)

    check.unless_array(check.real, name, min_norm=min_norm)
    return _floored(safe_length, x, min_norm)


def safe_root_mean_squares(x: ArrayLike, min_rms: Real) -> Num[Array, "..."]:
    """`max(rms(x), min_rms)`, with gradient 0 where `rms(x)` is at most `min_rms`.

        rms(x) = sqrt(mean(|x|^2))

    Inside `jax.shard_map` it is that of one device's shard.

    Args:
        x: an array; the mean of an empty one is zero.
        min_rms: the smallest value that is returned.
    """
    name = "safe_root_mean_squares"
    (x,) = check.array(name, x=x)
    check.unless_array(check.real, name, min_rms=min_rms)
    return _floored(rms, x, min_rms)


def safe_increment(count: ArrayLike) -> Num[Array, "..."]:
    """`count + 1`, saturating at the largest number of its dtype.

    Args:
        count: an integer or real number, or an array of them.
    """
    return _increment("safe_increment", count)


def _increment(name: str, count: ArrayLike) -> Array:
    (value,) = check.array(name, count=count)
    if jnp.issubdtype(value.dtype, jnp.integer):
        top = jnp.iinfo(value.dtype).max
    elif jnp.issubdtype(value.dtype, jnp.floating):
        top = jnp.finfo(value.dtype).max
    else:
        raise ValueError(
            f"{name}: count has dtype {value.dtype}, expected an integer or "
            "floating dtype. Begin the count with `jnp.zeros([], jnp.int32)`."
        )
    last = jnp.full(value.shape, top, value.dtype)
    return jnp.where(value < last, value + 1, last)


def safe_int32_increment(count: ArrayLike) -> Num[Array, "..."]:
    """`safe_increment` under its former name, for any dtype.

    Args:
        count: an integer or real number, or an array of them.
    """
    return _increment("safe_int32_increment", count)


def _floored(length: Callable[[Array], Array], x: Array, least: Real) -> Array:
    """`max(length(x), least)`; if equal, the gradient is that of `least`."""
    wide = at_least_float32(x)
    if not jnp.issubdtype(wide.dtype, jnp.inexact):
        wide = wide.astype(float)
    value = length(wide)
    own = value.dtype if wide.dtype == x.dtype else promoted(x, 1.0)
    dtype = promoted(own, least)
    floor = jnp.asarray(least, dtype)
    value = value.astype(dtype)
    return jnp.where(value <= floor, floor, value)
