"""The trust ratio: steps proportional to the norm of the weights.

You, Gitman and Ginsburg, Large batch training of convolutional networks, 2017,
arXiv:1708.03888
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
from ..numerics import length


def trust_ratio_formula(
    g: Array,
    p: Array,
    *,
    min_norm: Real,
    trust_coefficient: Real,
    eps: Real,
    axes: MeshAxes | None,
) -> Array:
    """`u = g trust_coefficient |p| / (|g| + eps)`."""
    p_norm = jnp.maximum(length(p, axes), min_norm)
    g_norm = jnp.maximum(length(g, axes), min_norm)
    known = (p_norm > 0) & (g_norm > 0)
    ratio = trust_coefficient * p_norm / jnp.where(known, g_norm + eps, 1)
    return jnp.where(known, ratio, 1) * g


@transformation
def scale_by_trust_ratio(
    min_norm: Real = 0.0,
    trust_coefficient: Real = 1.0,
    eps: Real = 0.0,
    *,
    axis_name: AxisName = None,
) -> GradientTransformationExtraArgs:
    """Scale each leaf of the update to the norm of its param.

        u = g trust_coefficient |p| / (|g| + eps)       and u = g if |p| or |g| is 0

    where both norms are at least `min_norm`.

    Args:
        min_norm: lower bound of both norms.
        trust_coefficient: the norm of the update relative to that of the param.
        eps: added to the norm of the gradient.
        axis_name: inside `jax.shard_map`, the mesh axes over which the params are
            sharded. Without it, each device uses only its own shard.

    >>> import jax.numpy as jnp, steepest
    >>> tx = steepest.scale_by_trust_ratio(trust_coefficient=0.1)
    >>> g, p = jnp.array([3.0, 4.0]), jnp.array([0.0, -20.0])
    >>> u, _ = tx.update(g, tx.init(p), p)
    >>> [round(float(x), 3) for x in u]
    [1.2, 1.6]
    """
    name = "scale_by_trust_ratio"
    min_norm, eps = check.amount(name, min_norm=min_norm, eps=eps)
    axes = mesh_axes(name, axis_name)
    (trust_coefficient,) = check.real(name, trust_coefficient=trust_coefficient)
    return lift(
        Rule(
            name,
            trust_ratio_formula,
            numbers={
                "min_norm": min_norm,
                "trust_coefficient": trust_coefficient,
                "eps": eps,
                "axes": axes,
            },
            kind="whole",
        )
    )
