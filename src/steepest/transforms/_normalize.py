"""Normalize the updates by their global norm."""

from jaxtyping import Array

from .. import check
from ..core import (
    AxisName,
    gives,
    GradientTransformationExtraArgs,
    Measure,
    mesh_axes,
    Real,
    Rule,
    transformation,
)
from ..engine import lift
from ..numerics import gradient_norm_squared, root
from ._clip import scaling_formula


@gives("factor")
def normalizing_factor(
    *, total: Array, scale_factor: Real, eps: Real
) -> dict[str, Array]:
    """`scale_factor / (|g| + eps)`, where `total` is the sum of squares."""
    return {"factor": scale_factor / (root(total) + eps)}


@transformation
def normalize_by_update_norm(
    scale_factor: Real = 1.0, eps: Real = 1e-6, *, axis_name: AxisName = None
) -> GradientTransformationExtraArgs:
    """`u = scale_factor g / (|g| + eps)`, where `|g|` is the global norm of all leaves.

    Args:
        scale_factor: the global norm of the updates.
        eps: keeps `u` small when the gradient is tiny.
        axis_name: inside `jax.shard_map`, the mesh axes over which the params are
            sharded. Without it, each device uses only its own shard.

    >>> import jax.numpy as jnp, steepest
    >>> tx = steepest.normalize_by_update_norm(10.0)
    >>> g = {"w": jnp.array([3.0]), "b": jnp.array([4.0])}
    >>> u, _ = tx.update(g, tx.init(g))
    >>> round(float(u["w"][0]), 3), round(float(u["b"][0]), 3)
    (6.0, 8.0)
    """
    name = "normalize_by_update_norm"
    (scale_factor,) = check.real(name, scale_factor=scale_factor)
    (eps,) = check.nonnegative(name, eps=eps)
    return lift(
        Rule(
            name,
            scaling_formula,
            numbers={"scale_factor": scale_factor, "eps": eps},
            per_step=normalizing_factor,
            measure=Measure(gradient_norm_squared, axes=mesh_axes(name, axis_name)),
        )
    )
