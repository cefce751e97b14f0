"""A sum of several updates, now and then."""

from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Int

from ..core import (
    GradientTransformationExtraArgs,
    like_optax,
    period,
    Real,
    Rule,
    Step,
    transformation,
    Updates,
)
from ..engine import lift
from ..numerics import first_moment, zero_count


@like_optax
class ApplyEvery(NamedTuple):
    """What is summed so far."""

    count: Int[Array, ""]  # updates since the last sum was handed on
    grad_acc: Updates  # their sum


@transformation
def apply_every(k: Real = 1) -> GradientTransformationExtraArgs:
    """The sum of `k` updates in every `k`-th step, and zero in the others.

    It differs from `MultiSteps`: what comes after it in the chain runs in every step.

    Args:
        k: how many updates make one.

    >>> import steepest
    >>> tx = steepest.apply_every(2)
    >>> g = jnp.array([1.0])
    >>> u, state = tx.update(g, tx.init(g))
    >>> v, state = tx.update(g, state)
    >>> float(u[0]), float(v[0])
    (0.0, 2.0)
    """
    (k,) = period("apply_every", k=k)

    def prepare(step: Step, count: Array) -> tuple[dict[str, Array], Array]:
        later = (count + 1) % jnp.asarray(k).astype(count.dtype)
        return {"first": count == 0, "last": later == 0}, later

    def leaf(n: Any, g: Array, p: Array | None, acc: Array) -> tuple[Array, Array]:
        acc = jnp.where(n.first, g, acc + g)
        return jnp.where(n.last, acc, 0), acc

    return lift(
        Rule(
            "apply_every",
            ApplyEvery,
            leaf,
            remember={"grad_acc": first_moment()},
            shared={"count": zero_count},
            prepare=prepare,
        )
    )
