"""Clipping.

Pascanu, Mikolov and Bengio, On the difficulty of training recurrent neural networks,
2013, arXiv:1211.5063
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
    only_real,
    Real,
    Rule,
    Step,
)
from ..engine import lift
from ..numerics import root, sum_of_squares


def clip(max_delta: Real) -> GradientTransformationExtraArgs:
    """`u = min(max(g, -max_delta), max_delta)`, element by element.

    Args:
        max_delta: the largest size an element may have, which must be real.
    """
    (max_delta,) = nonnegative("clip", max_delta=max_delta)

    def leaf(n: Any, g: Array, p: Array | None) -> Array:
        return jnp.clip(g, -max_delta, max_delta)

    return lift(Rule("clip", EmptyState, leaf, refuse=only_real))


def clip_by_global_norm(
    max_norm: Real, *, axis_name: AxisName = None
) -> GradientTransformationExtraArgs:
    """`u = g min(1, max_norm / |g|)`, where `|g|` is the length of all leaves together.

    Args:
        max_norm: the largest length the updates may have.
        axis_name: inside `jax.shard_map`, the mesh axes over which the params are
            split. Without it, each device measures its own part.

    >>> import steepest
    >>> tx = steepest.clip_by_global_norm(1.0)
    >>> g = {"w": jnp.array([3.0]), "b": jnp.array([4.0])}
    >>> u, _ = tx.update(g, tx.init(g))
    >>> round(float(u["w"][0]), 3), round(float(u["b"][0]), 3)
    (0.6, 0.8)
    """
    who = "clip_by_global_norm"
    (max_norm,) = nonnegative(who, max_norm=max_norm)

    def prepare(step: Step) -> dict[str, Any]:
        norm = root(step.total)
        short = norm <= max_norm
        # The inner `where` keeps 0 / 0 out, also of the derivative.
        return {"factor": jnp.where(short, 1.0, max_norm / jnp.where(short, 1.0, norm))}

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
