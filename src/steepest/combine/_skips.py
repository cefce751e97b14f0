"""Which gradients `MultiSteps` skips."""

import jax
import jax.numpy as jnp
from jaxtyping import Array

from .. import check
from ..core import AxisName, mesh_axes, Params, Real, Updates
from ..engine import Leaves
from ..numerics import sum_of_leaves
from ._decisions import squared_norm


def skip_not_finite(
    updates: Updates,
    gradient_step: object,
    params: Params | None,
    *,
    axis_name: AxisName = None,
) -> tuple[Array, dict[str, Array]]:
    """Skip a gradient that has an infinity or a NaN.

    Args:
        updates: the gradient.
        gradient_step, params: ignored.
        axis_name: inside `jax.shard_map`, the mesh axes over which the gradients are
            sharded or differ, so that all devices make the same decision.
    """
    del gradient_step, params
    name = "skip_not_finite"
    Leaves(updates).check(name)
    bad = lambda x: jnp.sum(~jnp.isfinite(x))
    leaves, axes = jax.tree.leaves(updates), mesh_axes(name, axis_name)
    count = sum_of_leaves(axes, bad, leaves, jnp.zeros((), int))
    skip = count > 0
    return skip, {"should_skip": skip, "num_not_finite": count}


def skip_large_updates(
    updates: Updates,
    gradient_step: object,
    params: Params | None,
    max_squared_norm: Real,
    *,
    axis_name: AxisName = None,
) -> tuple[Array, dict[str, Array]]:
    """Skip a gradient whose norm is too large, or that is not finite.

    Args:
        updates: the gradient.
        gradient_step, params: ignored.
        max_squared_norm: a gradient is skipped if its squared norm is not below this.
        axis_name: inside `jax.shard_map`, the mesh axes over which the params are
            sharded. Without it, each device uses only its own shard.
    """
    del gradient_step, params
    (most,) = check.nonnegative("skip_large_updates", max_squared_norm=max_squared_norm)
    Leaves(updates).check("skip_large_updates")
    norm_squared = squared_norm(updates, mesh_axes("skip_large_updates", axis_name))
    # Not `norm_squared >= most`, which is false for NaN.
    skip = ~(norm_squared < most)
    return skip, {"should_skip": skip, "norm_squared": norm_squared}
