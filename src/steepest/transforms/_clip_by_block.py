"""Clipping each leaf by itself.

Shazeer and Stern, Adafactor: adaptive learning rates with sublinear memory cost, 2018,
arXiv:1804.04235
"""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array

from ..core import (
    AxisName,
    EmptyState,
    GradientTransformationExtraArgs,
    mesh_axes,
    nonnegative,
    Real,
    Rule,
    transformation,
)
from ..engine import lift
from ..numerics import rms


@transformation
def clip_by_block_rms(
    threshold: Real, *, axis_name: AxisName = None
) -> GradientTransformationExtraArgs:
    """`u = g min(1, threshold / rms(g))`, with each leaf's own root mean square.

    Args:
        threshold: the largest root mean square a leaf may have.
        axis_name: inside `jax.shard_map`, the mesh axes over which the params are
            split. Without it, each device measures its own part.

    >>> import steepest
    >>> tx = steepest.clip_by_block_rms(1.0)
    >>> g = {"w": jnp.array([3.0, -3.0]), "b": jnp.array(0.5)}
    >>> u, _ = tx.update(g, tx.init(g))
    >>> u["w"].tolist(), float(u["b"])
    ([1.0, -1.0], 0.5)
    """
    (threshold,) = nonnegative("clip_by_block_rms", threshold=threshold)
    axes = mesh_axes("clip_by_block_rms", axis_name)

    def leaf(n: Any, g: Array, p: Array | None) -> Array:
        size = rms(g, axes)
        # The inner `where` keeps 0 / 0 out, also of the derivative.
        clipped = threshold * (g / jnp.where(size > 0, size, 1))
        # A negative threshold clips nothing, as in Optax.
        return jnp.where((size < threshold) | (threshold < 0), g, clipped)

    return lift(Rule("clip_by_block_rms", EmptyState, leaf, kind="whole"))
