"""Clipping each leaf by its own root mean square.

Shazeer and Stern, Adafactor: adaptive learning rates with sublinear memory cost, 2018,
arXiv:1804.04235
"""

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
from ..numerics import rms


def clip_by_rms_formula(g: Array, *, threshold: Real, axes: MeshAxes | None) -> Array:
    """`u = g min(1, threshold / rms(g))`."""
    size = rms(g, axes)
    # The inner `where` avoids 0 / 0, in the derivative too.
    clipped = threshold * (g / jnp.where(size > 0, size, 1))
    # A negative threshold clips nothing, as in Optax.
    return jnp.where((size < threshold) | (threshold < 0), g, clipped)


@transformation
def clip_by_block_rms(
    threshold: Real, *, axis_name: AxisName = None
) -> GradientTransformationExtraArgs:
    """`u = g min(1, threshold / rms(g))`, with each leaf's own root mean square.

    Args:
        threshold: the largest root mean square of a leaf.
        axis_name: inside `jax.shard_map`, the mesh axes over which the params are
            sharded. Without it, each device uses only its own shard.

    >>> import jax.numpy as jnp, steepest
    >>> tx = steepest.clip_by_block_rms(1.0)
    >>> g = {"w": jnp.array([3.0, -3.0]), "b": jnp.array(0.5)}
    >>> u, _ = tx.update(g, tx.init(g))
    >>> u["w"].tolist(), float(u["b"])
    ([1.0, -1.0], 0.5)
    """
    name = "clip_by_block_rms"
    (threshold,) = check.nonnegative(name, threshold=threshold)
    numbers = {"threshold": threshold, "axes": mesh_axes(name, axis_name)}
    return lift(Rule(name, clip_by_rms_formula, numbers=numbers, kind="whole"))
