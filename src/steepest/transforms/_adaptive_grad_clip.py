"""Adaptive gradient clipping: limit each unit relative to the norm of its weights.

Brock et al., High-performance large-scale image recognition without normalization,
2021, arXiv:2102.06171
"""

from functools import partial

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array

from .. import check
from ..core import (
    AxisName,
    GradientTransformationExtraArgs,
    mesh_axes,
    MeshAxes,
    Param,
    Real,
    Rule,
    transformation,
)
from ..engine import lift
from ..numerics import split_over, sqrt_or_zero, squares, sum_over

Axes = int | tuple[int, ...] | None


def unitwise_norm(
    x: ArrayLike, axis: Axes = None, *, axis_name: AxisName = None
) -> Array:
    """The norm of the unit each element belongs to, in the shape of `x`.

    Args:
        x: an array.
        axis: the axes of one unit. By default, all axes of a scalar or a vector, the
            first axis of an array with two axes (inputs, outputs) or three, and all
            axes but the last of a convolution kernel.
        axis_name: inside `jax.shard_map`, the mesh axes that split the axes of a unit,
            and no others. Without it, each device uses only its own shard.

    >>> import jax.numpy as jnp
    >>> unitwise_norm(jnp.array([[3.0, 1.0], [4.0, 0.0]])).tolist()
    [[5.0, 1.0], [5.0, 1.0]]
    """
    (x,) = check.array("unitwise_norm", x=x)
    square = squares(x)
    unit = _unit(x.shape) if axis is None else check.axes("unitwise_norm", axis, x.ndim)
    if unit is None:
        raise ValueError(f"unitwise_norm: x has shape {x.shape}{_TOO_MANY}")
    # Broadcast by adding zeros, which also gives the result the array's sharding.
    where = split_over(mesh_axes("unitwise_norm", axis_name), x)
    norm = sqrt_or_zero(sum_over(where, jnp.sum(square, axis=unit, keepdims=True)))
    norm = norm + jnp.zeros_like(square)
    return norm.astype(x.dtype) if jnp.issubdtype(x.dtype, jnp.floating) else norm


def unitwise_clip(
    g_norm: ArrayLike, max_norm: ArrayLike, grad: ArrayLike, div_eps: Real = 1e-6
) -> Array:
    """`grad`, or `grad max_norm / g_norm` where `g_norm >= max_norm`.

    Args:
        g_norm: for each element of `grad`, the norm of its unit.
        max_norm: for each element of `grad`, the largest norm its unit may have.
        grad: the gradient, of the same shape.
        div_eps: lower bound of the divisor.
    """
    name = "unitwise_clip"
    g_norm, max_norm, grad = check.array(
        name, g_norm=g_norm, max_norm=max_norm, grad=grad
    )
    (div_eps,) = check.nonnegative(name, div_eps=div_eps)
    with jax.numpy_dtype_promotion("standard"):
        if not g_norm.shape == max_norm.shape == grad.shape:
            raise ValueError(
                f"{name}: g_norm has shape {g_norm.shape}, max_norm {max_norm.shape} "
                f"and grad {grad.shape}, expected the same shape for all three. "
                "Compute the norms with `unitwise_norm`."
            )
        clipped = grad * (max_norm / jnp.maximum(g_norm, div_eps))
        return jnp.where(g_norm < max_norm, grad, clipped)


def adaptive_clip_formula(
    g: Array,
    p: Array,
    *,
    clipping: Real,
    eps: Real,
    axis: Axes,
    axes: MeshAxes | None,
) -> Array:
    """`u = g min(1, clipping max(|p|, eps) / |g|)`, with norms by unit."""
    names = None if axes is None else axes.names
    norm = partial(unitwise_norm, axis=axis, axis_name=names)
    return unitwise_clip(norm(g), clipping * jnp.maximum(norm(p), eps), g)


@transformation
def adaptive_grad_clip(
    clipping: Real,
    eps: Real = 1e-3,
    axis: Axes = None,
    *,
    axis_name: AxisName = None,
) -> GradientTransformationExtraArgs:
    """Clip the gradient of each unit to a fraction of the norm of its weights.

        u = g min(1, clipping max(|p|, eps) / |g|)          norms by `unitwise_norm`

    Args:
        clipping: the largest allowed ratio of gradient norm to weight norm.
        eps: lower bound of the weight norm, so that zero weights can still move.
        axis: the axes of one unit. By default, all axes of a scalar or a vector, the
            first axis of an array with two axes (inputs, outputs) or three, and all
            axes but the last of a convolution kernel.
        axis_name: inside `jax.shard_map`, the mesh axes that split the axes of a unit,
            and no others. Without it, each device uses only its own shard. Give leaves
            that are sharded differently a mask of their own.

    >>> import jax.numpy as jnp, steepest
    >>> tx = steepest.adaptive_grad_clip(0.1)
    >>> g, p = jnp.array([[3.0, 0.1], [4.0, 0.0]]), jnp.array([[10.0, 0.0], [0.0, 1.0]])
    >>> u, _ = tx.update(g, tx.init(p), p)
    >>> [[round(float(x), 3) for x in row] for row in u]
    [[0.6, 0.1], [0.8, 0.0]]
    """
    name = "adaptive_grad_clip"
    clipping, eps = check.nonnegative(name, clipping=clipping, eps=eps)
    check.axes(name, axis, _MOST_AXES)
    return lift(
        Rule(
            name,
            adaptive_clip_formula,
            numbers={
                "clipping": clipping,
                "eps": eps,
                "axis": axis,
                "axes": mesh_axes(name, axis_name),
            },
            kind="whole",
            check_leaf=partial(_has_units, axis=axis),
        )
    )


def _has_units(g: Param, axis: Axes) -> str | None:
    """The end of an error message if the leaf cannot be split into units."""
    requested = [axis] if isinstance(axis, int) else list(axis or ())
    if any(not -g.ndim <= a < g.ndim for a in requested):
        return (
            f"has shape {g.shape}, expected a shape with axis {axis}. Exclude the leaf "
            "with `masked`."
        )
    many = axis is None and _unit(g.shape) is None
    return f"has shape {g.shape}{_TOO_MANY}" if many else None


_MOST_AXES = 64  # more than any array has
_TOO_MANY = ", expected at most five axes. Pass the axes of one unit as `axis`."


def _unit(shape: tuple[int, ...]) -> Axes:
    """The default axes of a unit in a leaf of this shape; `None` if there are none."""
    if sum(size != 1 for size in shape) <= 1:
        return tuple(range(len(shape)))
    if len(shape) <= 3:
        return 0
    return tuple(range(len(shape) - 1)) if len(shape) <= 5 else None
