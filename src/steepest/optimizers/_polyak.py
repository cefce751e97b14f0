"""Gradient descent with the Polyak step size.

Polyak, Introduction to optimization, 1987
Loizou et al., Stochastic Polyak step-size for SGD: an adaptive learning rate for fast
convergence, 2021, arXiv:2002.10542
Garrigos, Gower and Schaipp, Function value learning: adaptive learning rates based on
the Polyak stepsize and function splitting in ERM, 2023, arXiv:2307.14528 (SPS+)
"""

from typing import Literal

import jax.numpy as jnp
from jax.typing import ArrayLike, DTypeLike
from jaxtyping import Array

from .. import check
from ..combine import chain
from ..core import (
    AxisName,
    gives,
    GradientTransformationExtraArgs,
    Measure,
    mesh_axes,
    Real,
    Rule,
    ScalarOrSchedule,
    transformation,
)
from ..engine import lift, optimizer
from ..numerics import gradient_norm_squared, quotient
from ._line import real_value
from ._sgd import sgd

_NAME = "scale_by_polyak"


@gives("size")
def polyak_step(
    *,
    total: Array,
    value: ArrayLike,
    f_min: Real,
    max_learning_rate: Real,
    eps: Real,
    variant: str,
) -> dict[str, Array]:
    """The size of the step, where `total` is the sum of squares of all leaves."""
    gap = real_value(_NAME, value).astype(float) - f_min
    gap = jnp.maximum(gap, 0) if variant == "sps+" else gap
    size = jnp.minimum(quotient(gap, total + eps), max_learning_rate)
    return {"size": jnp.where(total == 0, 0, size)}


def scaling_formula(g: Array, *, size: Array) -> Array:
    """`u = size g`."""
    return size * g


@transformation
def scale_by_polyak(
    f_min: Real = 0.0,
    max_learning_rate: Real = 1.0,
    eps: Real = 0.0,
    variant: Literal["sps", "sps+"] = "sps",
    *,
    axis_name: AxisName = None,
) -> GradientTransformationExtraArgs:
    """Multiply by the step that would reach `f_min` if the function were linear.

        u = g min((value - f_min) / (|g|^2 + eps), max_learning_rate)

    and `u = 0` if `g = 0`. `update` needs the value of the function, as `value=...`.

    Args:
        f_min: the smallest value of the function, or an estimate of it.
        max_learning_rate: the largest step size.
        eps: keeps the step small where the gradient is small.
        variant: if the value is below `f_min`, `sps` steps uphill and `sps+` does not
            move.
        axis_name: inside `jax.shard_map`, the mesh axes over which the params are
            sharded. Without it, each device measures only its own shard.
    """
    (f_min,) = check.real(_NAME, f_min=f_min)
    most, eps = check.nonnegative(_NAME, max_learning_rate=max_learning_rate, eps=eps)
    check.choice(_NAME, ("sps", "sps+"), variant=variant)
    return lift(
        Rule(
            _NAME,
            scaling_formula,
            numbers={
                "f_min": f_min,
                "max_learning_rate": most,
                "eps": eps,
                "variant": variant,
            },
            per_step=polyak_step,
            measure=Measure(gradient_norm_squared, axes=mesh_axes(_NAME, axis_name)),
            extra=("value",),
        )
    )


@optimizer
def polyak_sgd(
    max_learning_rate: Real = 1.0,
    scaling: ScalarOrSchedule = 1.0,
    f_min: Real = 0.0,
    eps: Real = 0.0,
    variant: Literal["sps", "sps+"] = "sps",
    *,
    axis_name: AxisName = None,
    memory_dtype: DTypeLike | None = None,
    keep_count: bool = False,
) -> GradientTransformationExtraArgs:
    """SGD with the Polyak step: `p <- p - u`, `u = scale_by_polyak(scaling g)`.

    Args:
        max_learning_rate: the largest step size.
        scaling: multiplies the gradient before its norm is taken, so it divides the
            step unless the step is at its bound. A number, or a schedule.
        f_min: the smallest value of the function, or an estimate of it.
        eps: keeps the step small where the gradient is small.
        variant: if the value is below `f_min`, `sps` steps uphill and `sps+` does not
            move.
        axis_name: inside `jax.shard_map`, the mesh axes over which the params are
            sharded. Without it, each device measures only its own shard.
        memory_dtype: dtype of the arrays in the state that have no option of their own,
            such as `mu_dtype`, or where it is `None`; by default that of the params, or
            wider. With "int8", "int4" or "float8", averages for large matrices are
            stored in 8 or 4 bits: see `keeping`.
        keep_count: whether to count the steps even if the learning rate is a number, so
            that a schedule can replace it later.

    >>> import jax.numpy as jnp, steepest
    >>> tx = steepest.polyak_sgd()
    >>> g = jnp.array([2.0])
    >>> u, _ = tx.update(g, tx.init(g), g, value=1.0)
    >>> u.tolist()
    [-0.5]
    """
    return chain(
        sgd(learning_rate=scaling),
        scale_by_polyak(f_min, max_learning_rate, eps, variant, axis_name=axis_name),
    )
