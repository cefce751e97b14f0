"""Regression losses."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .. import check
from ..numerics import promoted
from ._arrays import (
    array,
    Axis,
    floating,
    mask,
    meet,
    Numbers,
    same_shape,
    spread,
    weight,
)

Loss = Float[Array, "..."]


def squared_error(predictions: Numbers, targets: Numbers | None = None) -> Loss:
    """`(predictions - targets)^2`, for each entry.

    Its mean is the mean squared error.

    Args:
        predictions: real numbers.
        targets: of the same shape; by default zeros.
    """
    return _square("squared_error", predictions, targets)


def l2_loss(predictions: Numbers, targets: Numbers | None = None) -> Loss:
    """`(predictions - targets)^2 / 2`, for each entry; its gradient is the difference.

    Args:
        predictions: real numbers.
        targets: of the same shape; by default zeros.
    """
    return _square("l2_loss", predictions, targets) / 2


def huber_loss(
    predictions: Numbers, targets: Numbers | None = None, *, delta: Numbers = 1.0
) -> Loss:
    """The Huber loss: quadratic near zero, linear with slope `delta` further out.

        e    = |predictions - targets|
        loss = e^2 / 2                       where e <= delta
               delta (e - delta / 2)         elsewhere

    Huber, Robust estimation of a location parameter, 1964

    Args:
        predictions: real numbers.
        targets: of a shape that broadcasts; by default zeros.
        delta: where it becomes linear, at least 0; a number or an array.
    """
    name = "huber_loss"
    dtype, (e, width) = _difference(
        name, predictions, targets, delta=weight(name, check.nonnegative, delta=delta)
    )
    e = jnp.abs(e)
    inner = jnp.minimum(e, width)
    return (inner * inner / 2 + width * (e - inner)).astype(dtype)


def log_cosh(predictions: Numbers, targets: Numbers | None = None) -> Loss:
    """`log(cosh(e))`, `e = predictions - targets`: `e^2 / 2` near zero, `|e|` far out.

        loss = log(1 + 2 sinh(e / 2)^2)              where |e| < 1
               |e| + log(1 + exp(-2 |e|)) - log 2    elsewhere

    Both lines are the same number: the first is precise near zero, the second does not
    overflow.

    Chen, Log hyperbolic cosine loss improves variational auto-encoder, 2019

    Args:
        predictions: real numbers.
        targets: of a shape that broadcasts; by default zeros.
    """
    dtype, (e,) = _difference("log_cosh", predictions, targets)
    near = jnp.abs(e) < 1
    sinh = jnp.sinh(jnp.where(near, e, 0) / 2)
    far = jnp.abs(jnp.where(near, 1, e))
    line = far + jnp.log1p(jnp.exp(-2 * far)) - jnp.log(2.0).astype(e.dtype)
    return jnp.where(near, jnp.log1p(2 * sinh * sinh), line).astype(dtype)


def cosine_similarity(
    predictions: Numbers,
    targets: Numbers,
    *,
    epsilon: Numbers = 0.0,
    axis: Axis = -1,
    where: Numbers | None = None,
) -> Loss:
    """The cosine of the angle between predictions and targets.

        loss = <p, t> / sqrt(max(|p|^2, epsilon) max(|t|^2, epsilon))

    Without `epsilon` a vector of zeros has no angle, and the result is NaN.

    Args:
        predictions: real numbers.
        targets: real numbers, of a shape that broadcasts.
        epsilon: lower bound of the squared norms, at least 0; a number, or an array
            with one number for each vector.
        axis: the axis or axes of the vectors; `None` is all.
        where: mask of the entries that count; vectors without any have similarity 0.
    """
    dtype, cosine = _cosine(
        "cosine_similarity", predictions, targets, epsilon, axis, where
    )
    return cosine.astype(dtype)


def cosine_distance(
    predictions: Numbers,
    targets: Numbers,
    *,
    epsilon: Numbers = 0.0,
    axis: Axis = -1,
    where: Numbers | None = None,
) -> Loss:
    """`1 - cosine_similarity`: 0 for the same direction, 2 for the opposite.

    Args:
        predictions: real numbers.
        targets: real numbers, of a shape that broadcasts.
        epsilon: lower bound of the squared norms, at least 0; a number, or an array
            with one number for each vector.
        axis: the axis or axes of the vectors; `None` is all.
        where: mask of the entries that count; vectors without any have distance 1.
    """
    dtype, cosine = _cosine(
        "cosine_distance", predictions, targets, epsilon, axis, where
    )
    return (1 - cosine).astype(dtype)


def unit(
    x: Float[Array, "..."], epsilon: Array, along: tuple[int, ...], empty: Array | bool
) -> Float[Array, "..."]:
    """`x / sqrt(max(|x|^2, epsilon))`, and zeros where `empty`.

    `x` is divided by its largest entry first, so that squares stay in the range of the
    dtype. That factor cancels, and is not differentiated.
    """
    top = jax.lax.stop_gradient(jnp.max(jnp.abs(x), along, keepdims=True, initial=0))
    top = jnp.where((top > 0) & jnp.isfinite(top), top, 1)
    x, least = x / top, jnp.sqrt(epsilon) / top
    squares = jnp.sum(x * x, along, keepdims=True)
    # The derivative of the root at zero is infinite, so zero is replaced first.
    length = jnp.sqrt(jnp.where(squares > 0, squares, 1))
    short = (squares == 0) | (length <= least)
    return x / jnp.where(empty, 1, jnp.where(short, least, length))


def _square(name: str, predictions: Numbers, targets: Numbers | None) -> Loss:
    p = floating(name, "predictions", predictions)
    if targets is not None:
        same_shape(name, predictions=p, targets=array(name, "targets", targets))
    dtype, (e,) = _difference(name, p, targets)
    return (e * e).astype(dtype)


def _difference(
    name: str, predictions: Numbers, targets: Numbers | None, **others: Array
) -> tuple[np.dtype, list[Array]]:
    p = floating(name, "predictions", predictions)
    t = jnp.zeros((), p.dtype) if targets is None else array(name, "targets", targets)
    dtype, (p, t, *rest) = meet(name, predictions=p, targets=t, **others)
    return dtype, [p - t, *rest]


def _cosine(
    name: str,
    predictions: Numbers,
    targets: Numbers,
    epsilon: Numbers,
    axis: Axis,
    where: Numbers | None,
) -> tuple[np.dtype, Loss]:
    p = floating(name, "predictions", predictions)
    t = floating(name, "targets", targets)
    least = weight(name, check.nonnegative, epsilon=epsilon)
    dtype = promoted(p, t, least)
    _, (p, t) = meet(name, predictions=p, targets=t)
    along = check.axes(name, axis, p.ndim)
    keep = mask(name, where, p.shape)
    least = least.astype(p.dtype)
    if least.ndim > 0:
        rest = tuple(n for a, n in enumerate(p.shape) if a not in along)
        least = jnp.expand_dims(spread(name, rest, epsilon=least), along)
    empty = ~jnp.any(keep, along, keepdims=True)
    p, t = (unit(jnp.where(keep, x, 0), least, along, empty) for x in (p, t))
    return dtype, jnp.sum(p * t, along)
