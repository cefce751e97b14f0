"""Emit the sum of `k` updates at every `k`-th step."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Int

from .. import check
from ..core import (
    gives,
    GradientTransformationExtraArgs,
    like_optax,
    Real,
    Rule,
    transformation,
    Updates,
)
from ..engine import lift
from ..numerics import first_moment, zero_count


@like_optax
class ApplyEvery(NamedTuple):
    """The sum so far."""

    count: Int[Array, ""]  # updates since a sum was last emitted
    grad_acc: Updates  # their sum


@gives("first", "last")
def place_in_period(count: Array, *, k: Real) -> tuple[dict[str, Array], Array]:
    """Whether this is the first of `k` steps, and whether it is the last."""
    later = (count + 1) % jnp.asarray(k).astype(count.dtype)
    return {"first": count == 0, "last": later == 0}, later


def apply_every_formula(
    g: Array, grad_acc: Array, *, first: Array, last: Array
) -> tuple[Array, Array]:
    """The sum of `k` updates at the last of the steps, zero at the others."""
    grad_acc = jnp.where(first, g, grad_acc + g)
    return jnp.where(last, grad_acc, 0), grad_acc


@transformation
def apply_every(k: Real = 1) -> GradientTransformationExtraArgs:
    """Emit the sum of `k` updates at every `k`-th step, and zero at the others.

    Unlike with `MultiSteps`, later transformations in the chain run at every step.
    All leaves have the same period, so use zeros for missing gradients (`None`): a leaf
    without the last of `k` gradients loses its sum, and one without the first adds to
    the sum of the last period.

    Args:
        k: the number of updates to sum.

    >>> import jax.numpy as jnp, steepest
    >>> tx = steepest.apply_every(2)
    >>> g = jnp.array([1.0])
    >>> u, state = tx.update(g, tx.init(g))
    >>> v, state = tx.update(g, state)
    >>> float(u[0]), float(v[0])
    (0.0, 2.0)
    """
    (k,) = check.period("apply_every", k=k)
    return lift(
        Rule(
            "apply_every",
            apply_every_formula,
            ApplyEvery,
            memory={"grad_acc": first_moment().exact},
            shared={"count": zero_count},
            numbers={"k": k},
            per_step=place_in_period,
        )
    )
