"""Adaptive gradient clipping: each unit by the size of its own weights.

Brock et al., High-performance large-scale image recognition without normalization,
2021, arXiv:2102.06171
"""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from ..core import EmptyState, GradientTransformationExtraArgs, nonnegative, Real, Rule
from ..engine import lift
from ..numerics import sqrt_or_zero, squares

Axes = int | tuple[int, ...] | None


def unitwise_norm(x: Any, axis: Axes = None) -> Array:
    """For each element, the length of the unit it belongs to; of the shape of `x`.

    Args:
        x: an array.
        axis: the axes a unit extends over. By default all axes of a scalar or a vector,
            the first of a matrix (inputs times outputs) or of three axes, and all but
            the last of a convolution.

    >>> unitwise_norm(jnp.array([[3.0, 1.0], [4.0, 0.0]])).tolist()
    [[5.0, 1.0], [5.0, 1.0]]
    """
    x = jnp.asarray(x)
    square = squares(x)
    axes = _unit(x.shape) if axis is None else axis
    # Spread over the array by a sum, which also gives it the array's sharding.
    norm = sqrt_or_zero(
        jnp.sum(square, axis=axes, keepdims=True) + jnp.zeros_like(square)
    )
    return norm.astype(x.dtype) if jnp.issubdtype(x.dtype, jnp.floating) else norm


def unitwise_clip(g_norm: Any, max_norm: Any, grad: Any, div_eps: Real = 1e-6) -> Array:
    """`grad`, and where `g_norm` is not below `max_norm`, `grad max_norm / g_norm`.

    Args:
        g_norm: for each element of `grad`, the length of its unit.
        max_norm: for each element, how long it may be.
        grad: the gradient, of the same shape.
        div_eps: nothing smaller is divided by.
    """
    with jax.numpy_dtype_promotion("standard"):
        g_norm, max_norm, grad = (jnp.asarray(x) for x in (g_norm, max_norm, grad))
        if not g_norm.shape == max_norm.shape == grad.shape:
            raise ValueError(
                f"unitwise_clip: g_norm has shape {g_norm.shape}, max_norm "
                f"{max_norm.shape} and grad {grad.shape}, and one shape is wanted. "
                "Make the norms with `unitwise_norm`."
            )
        clipped = grad * (max_norm / jnp.maximum(g_norm, div_eps))
        return jnp.where(g_norm < max_norm, grad, clipped)


def adaptive_grad_clip(
    clipping: Real, eps: Real = 1e-3, axis: Axes = None
) -> GradientTransformationExtraArgs:
    """Clip the gradient of each unit at a share of the length of its weights.

        u = g min(1, clipping max(|p|, eps) / |g|)         lengths by `unitwise_norm`

    Args:
        clipping: the largest share.
        eps: weights are thought to be at least so long, or they could not leave zero.
        axis: the axes a unit extends over, as for `unitwise_norm`.

    >>> import steepest
    >>> tx = steepest.adaptive_grad_clip(0.1)
    >>> g, p = jnp.array([[3.0, 0.1], [4.0, 0.0]]), jnp.array([[10.0, 0.0], [0.0, 1.0]])
    >>> u, _ = tx.update(g, tx.init(p), p)
    >>> [[round(float(x), 3) for x in row] for row in u]
    [[0.6, 0.1], [0.8, 0.0]]
    """
    clipping, eps = nonnegative("adaptive_grad_clip", clipping=clipping, eps=eps)

    def leaf(n: Any, g: Array, p: Array) -> Array:
        max_norm = clipping * jnp.maximum(unitwise_norm(p, axis), eps)
        return unitwise_clip(unitwise_norm(g, axis), max_norm, g)

    return lift(
        Rule("adaptive_grad_clip", EmptyState, leaf, needs=("params",), kind="whole")
    )


def _unit(shape: tuple[int, ...]) -> Axes:
    """The axes over which a unit of a leaf of this shape extends."""
    if sum(size != 1 for size in shape) <= 1:
        return tuple(range(len(shape)))
    if len(shape) <= 3:
        return 0
    if len(shape) > 5:
        raise ValueError(
            f"unitwise_norm: x has shape {shape}, and at most five axes are wanted. "
            "Say with `axis` over which of them a unit extends."
        )
    return tuple(range(len(shape) - 1))
