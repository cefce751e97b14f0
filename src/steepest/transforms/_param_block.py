"""Scale each leaf of the updates by the norm, or the root mean square, of its param.

Bernstein et al., On the distance between two neural networks and the stability of
learning, 2020, arXiv:2002.03432
Shazeer and Stern, Adafactor: adaptive learning rates with sublinear memory cost, 2018,
arXiv:1804.04235
"""

from collections.abc import Callable

import jax.numpy as jnp
from jaxtyping import Array

from .. import check
from ..core import (
    AxisName,
    GradientTransformationExtraArgs,
    mesh_axes,
    MeshAxes,
    Real,
    Rule,
    transformation,
)
from ..engine import lift
from ..numerics import length, rms


def param_norm_formula(
    g: Array, p: Array, *, min_scale: Real, axes: MeshAxes | None
) -> Array:
    """`u = max(|p|, min_scale) g`."""
    return jnp.maximum(length(p, axes), min_scale) * g


def param_rms_formula(
    g: Array, p: Array, *, min_scale: Real, axes: MeshAxes | None
) -> Array:
    """`u = max(rms(p), min_scale) g`."""
    return jnp.maximum(rms(p, axes), min_scale) * g


@transformation
def scale_by_param_block_norm(
    min_scale: Real = 1e-3, *, axis_name: AxisName = None
) -> GradientTransformationExtraArgs:
    """`u = max(|p|, min_scale) g`, where `|p|` is the norm of the leaf.

    Args:
        min_scale: lower bound of the factor, so that zero params can still move.
        axis_name: inside `jax.shard_map`, the mesh axes over which the params are
            sharded. Without it, each device uses only its own shard.

    >>> import jax.numpy as jnp, steepest
    >>> tx = steepest.scale_by_param_block_norm()
    >>> u, _ = tx.update(jnp.ones(2), tx.init(jnp.ones(2)), jnp.array([3.0, 4.0]))
    >>> u.tolist()
    [5.0, 5.0]
    """
    name = "scale_by_param_block_norm"
    return _scale_by(name, param_norm_formula, min_scale, axis_name)


@transformation
def scale_by_param_block_rms(
    min_scale: Real = 1e-3, *, axis_name: AxisName = None
) -> GradientTransformationExtraArgs:
    """`u = max(rms(p), min_scale) g`, where `rms(p)` is the leaf's root mean square.

    Args:
        min_scale: lower bound of the factor, so that zero params can still move.
        axis_name: inside `jax.shard_map`, the mesh axes over which the params are
            sharded. Without it, each device uses only its own shard.
    """
    name = "scale_by_param_block_rms"
    return _scale_by(name, param_rms_formula, min_scale, axis_name)


def _scale_by(
    name: str, formula: Callable[..., Array], min_scale: Real, axis_name: AxisName
) -> GradientTransformationExtraArgs:
    (min_scale,) = check.amount(name, min_scale=min_scale)
    numbers = {"min_scale": min_scale, "axes": mesh_axes(name, axis_name)}
    return lift(Rule(name, formula, numbers=numbers, kind="whole"))
