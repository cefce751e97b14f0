"""Replace NaNs by zeros, and record where they occurred."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array

from ..core import (
    AxisName,
    GradientTransformationExtraArgs,
    like_optax,
    mesh_axes,
    MeshAxes,
    Param,
    Rule,
    transformation,
    Updates,
)
from ..engine import lift
from ..numerics import any_over, split_over


@like_optax
class ZeroNansState(NamedTuple):
    """For each leaf, whether the last gradient had a NaN."""

    found_nan: Updates


def no_nan_yet(p: Param) -> Array:
    """`found_nan` before the first step."""
    del p
    return jnp.zeros((), bool)


def zero_nans_formula(
    g: Array, found_nan: Array, *, axes: MeshAxes | None
) -> tuple[Array, Array]:
    """`u = g`, with 0 where `g` is NaN; also whether `g` has a NaN."""
    bad = jnp.isnan(g)
    return jnp.where(bad, 0, g), any_over(split_over(axes, g), jnp.any(bad))


@transformation
def zero_nans(*, axis_name: AxisName = None) -> GradientTransformationExtraArgs:
    """`u = g`, with 0 where `g` is NaN.

    Infinite elements are unchanged; see `apply_if_finite` for those.

    Args:
        axis_name: inside `jax.shard_map`, the mesh axes over which the params are
            sharded, so that `found_nan` is the same on all devices.

    >>> import jax.numpy as jnp, steepest
    >>> tx = steepest.zero_nans()
    >>> g = {"w": jnp.array([jnp.nan, 1.0]), "b": jnp.array(2.0)}
    >>> u, state = tx.update(g, tx.init(g))
    >>> u["w"].tolist(), bool(state.found_nan["w"]), bool(state.found_nan["b"])
    ([0.0, 1.0], True, False)
    """
    return lift(
        Rule(
            "zero_nans",
            zero_nans_formula,
            ZeroNansState,
            memory={"found_nan": no_nan_yet},
            numbers={"axes": mesh_axes("zero_nans", axis_name)},
            kind="whole",
        )
    )
