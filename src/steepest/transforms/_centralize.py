"""Gradient centralization.

Yong et al., Gradient centralization: a new optimization technique for deep neural
networks, 2020, arXiv:2004.01461
"""

import jax.numpy as jnp
from jaxtyping import Array

from ..core import (
    AxisName,
    GradientTransformationExtraArgs,
    mesh_axes,
    MeshAxes,
    Rule,
    transformation,
)
from ..engine import lift
from ..numerics import parts_over, split_over, sum_over


def centralize_formula(g: Array, *, axes: MeshAxes | None) -> Array:
    """`u = g - mean(g)`, the mean over all axes but the first."""
    if g.ndim < 2 or g.size == 0:
        return g
    rest, where = tuple(range(1, g.ndim)), split_over(axes, g)
    mean = jnp.mean(g, axis=rest, keepdims=True)
    return g - sum_over(where, mean) / parts_over(where)


@transformation
def centralize(*, axis_name: AxisName = None) -> GradientTransformationExtraArgs:
    """`u = g - mean(g)`, the mean over all axes but the first; vectors are unchanged.

    Args:
        axis_name: inside `jax.shard_map`, the mesh axes that split any axis of the
            leaves but the first. Give leaves that are sharded along the first axis a
            mask of their own.

    >>> import jax.numpy as jnp, steepest
    >>> tx = steepest.centralize()
    >>> g = jnp.array([[1.0, 3.0], [10.0, 20.0]])
    >>> u, _ = tx.update(g, tx.init(g))
    >>> u.tolist()
    [[-1.0, 1.0], [-5.0, 5.0]]
    """
    numbers = {"axes": mesh_axes("centralize", axis_name)}
    return lift(Rule("centralize", centralize_formula, numbers=numbers, kind="whole"))
