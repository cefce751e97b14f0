"""Updates of one length."""

from typing import Any

from jaxtyping import Array

from ..core import (
    AxisName,
    EmptyState,
    GradientTransformationExtraArgs,
    mesh_axes,
    nonnegative,
    Real,
    real,
    Rule,
    Step,
    transformation,
)
from ..engine import lift
from ..numerics import root, sum_of_squares


@transformation
def normalize_by_update_norm(
    scale_factor: Real = 1.0, eps: Real = 1e-6, *, axis_name: AxisName = None
) -> GradientTransformationExtraArgs:
    """`u = scale_factor g / (|g| + eps)`, `|g|` the length of all leaves together.

    Args:
        scale_factor: the length of the updates.
        eps: keeps `u` small where the gradient is.
        axis_name: inside `jax.shard_map`, the mesh axes over which the params are
            split. Without it, each device measures its own part.

    >>> import jax.numpy as jnp, steepest
    >>> tx = steepest.normalize_by_update_norm(10.0)
    >>> g = {"w": jnp.array([3.0]), "b": jnp.array([4.0])}
    >>> u, _ = tx.update(g, tx.init(g))
    >>> round(float(u["w"][0]), 3), round(float(u["b"][0]), 3)
    (6.0, 8.0)
    """
    who = "normalize_by_update_norm"
    (scale_factor,) = real(who, scale_factor=scale_factor)
    (eps,) = nonnegative(who, eps=eps)

    def prepare(step: Step) -> dict[str, Array]:
        return {"factor": scale_factor / (root(step.total) + eps)}

    def leaf(n: Any, g: Array, p: Array | None) -> Array:
        return n.factor * g

    return lift(
        Rule(
            who,
            EmptyState,
            leaf,
            prepare=prepare,
            measure=lambda n, g, p: sum_of_squares(g),
            axes=mesh_axes(who, axis_name),
        )
    )
