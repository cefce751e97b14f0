"""Clipping.

Pascanu, Mikolov and Bengio, On the difficulty of training recurrent neural networks,
2013, arXiv:1211.5063
"""

import jax.numpy as jnp
from jaxtyping import Array

from .. import check
from ..core import (
    AxisName,
    gives,
    GradientTransformationExtraArgs,
    Measure,
    mesh_axes,
    only_real,
    Real,
    Rule,
    transformation,
)
from ..engine import lift
from ..numerics import gradient_norm_squared, root


def clip_formula(g: Array, *, max_delta: Real) -> Array:
    """`u = min(max(g, -max_delta), max_delta)`."""
    return jnp.clip(g, -max_delta, max_delta)


@transformation
def clip(max_delta: Real) -> GradientTransformationExtraArgs:
    """`u = min(max(g, -max_delta), max_delta)`, element by element.

    Args:
        max_delta: the largest absolute value of an element. The leaves must be real.
    """
    (max_delta,) = check.nonnegative("clip", max_delta=max_delta)
    numbers = {"max_delta": max_delta}
    return lift(Rule("clip", clip_formula, numbers=numbers, check_leaf=only_real))


def scaling_formula(g: Array, *, factor: Array) -> Array:
    """`u = factor g`."""
    return factor * g


@gives("factor")
def clipping_factor(*, total: Array, max_norm: Real) -> dict[str, Array]:
    """`min(1, max_norm / |g|)`, where `total` is the sum of squares of all leaves."""
    norm = root(total)
    short = norm <= max_norm
    # The inner `where` avoids 0 / 0, in the derivative too.
    return {"factor": jnp.where(short, 1.0, max_norm / jnp.where(short, 1.0, norm))}


@transformation
def clip_by_global_norm(
    max_norm: Real, *, axis_name: AxisName = None
) -> GradientTransformationExtraArgs:
    """`u = g min(1, max_norm / |g|)`, where `|g|` is the global norm of all leaves.

    Args:
        max_norm: the largest global norm of the updates.
        axis_name: inside `jax.shard_map`, the mesh axes over which the params are
            sharded. Without it, each device uses only its own shard.

    >>> import jax.numpy as jnp, steepest
    >>> tx = steepest.clip_by_global_norm(1.0)
    >>> g = {"w": jnp.array([3.0]), "b": jnp.array([4.0])}
    >>> u, _ = tx.update(g, tx.init(g))
    >>> round(float(u["w"][0]), 3), round(float(u["b"][0]), 3)
    (0.6, 0.8)
    """
    name = "clip_by_global_norm"
    (max_norm,) = check.nonnegative(name, max_norm=max_norm)
    return lift(
        Rule(
            name,
            scaling_formula,
            numbers={"max_norm": max_norm},
            per_step=clipping_factor,
            measure=Measure(gradient_norm_squared, axes=mesh_axes(name, axis_name)),
        )
    )
