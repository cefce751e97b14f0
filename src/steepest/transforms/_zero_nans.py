"""NaNs set to zero, and noted."""

from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array

from ..core import (
    AxisName,
    GradientTransformationExtraArgs,
    like_optax,
    mesh_axes,
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


@transformation
def zero_nans(*, axis_name: AxisName = None) -> GradientTransformationExtraArgs:
    """`u = g`, with 0 where `g` is NaN.

    What is infinite stays: see `apply_if_finite` for that.

    Args:
        axis_name: inside `jax.shard_map`, the mesh axes over which the params are
            split, so that all devices note the same. The updates need no name.

    >>> import steepest
    >>> tx = steepest.zero_nans()
    >>> g = {"w": jnp.array([jnp.nan, 1.0]), "b": jnp.array(2.0)}
    >>> u, state = tx.update(g, tx.init(g))
    >>> u["w"].tolist(), bool(state.found_nan["w"]), bool(state.found_nan["b"])
    ([0.0, 1.0], True, False)
    """

    def leaf(
        n: Any, g: Array, p: Array | None, found_nan: Array
    ) -> tuple[Array, Array]:
        bad = jnp.isnan(g)
        return jnp.where(bad, 0, g), any_over(split_over(axes, g), jnp.any(bad))

    axes = mesh_axes("zero_nans", axis_name)
    remember = {"found_nan": lambda p: jnp.zeros((), bool)}
    return lift(Rule("zero_nans", ZeroNansState, leaf, remember, kind="whole"))
