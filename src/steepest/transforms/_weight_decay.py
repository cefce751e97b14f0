"""Decoupled weight decay.

Loshchilov and Hutter, Decoupled weight decay regularization, 2019, arXiv:1711.05101
"""

from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Int

from ..combine import masked
from ..core import (
    EmptyState,
    finite,
    GradientTransformationExtraArgs,
    like_optax,
    Rule,
    ScalarOrSchedule,
    Schedule,
    Step,
)
from ..engine import lift, MaskOrFn
from ..numerics import before, increment, zero_count


@like_optax
class WeightDecaySchedule(NamedTuple):
    """How far the schedule of the decay has come."""

    count: Int[Array, ""]


def add_decayed_weights(
    weight_decay: ScalarOrSchedule = 0.0, mask: MaskOrFn | None = None
) -> GradientTransformationExtraArgs:
    """`u = g + weight_decay p`.

    Args:
        weight_decay: a number, or a function of the count.
        mask: which leaves decay, as for `masked`; by default all.

    >>> import steepest
    >>> tx = steepest.add_decayed_weights(0.1)
    >>> g, p = jnp.array([1.0]), jnp.array([5.0])
    >>> u, _ = tx.update(g, tx.init(p), p)
    >>> float(u[0])
    1.5
    """
    tx = _scheduled(weight_decay) if callable(weight_decay) else _fixed(weight_decay)
    return tx if mask is None else masked(tx, mask)


def _fixed(weight_decay: Any) -> GradientTransformationExtraArgs:
    (weight_decay,) = finite("add_decayed_weights", weight_decay=weight_decay)

    def leaf(n: Any, g: Array, p: Array) -> Array:
        # XLA does not leave out `0 p`, for `p` could be infinite: it would be read.
        off = isinstance(weight_decay, int | float) and weight_decay == 0
        return g if off else g + weight_decay * p

    return lift(
        Rule(
            "add_decayed_weights",
            EmptyState,
            leaf,
            needs=("params",),
            shows=lambda: {"weight_decay": weight_decay},
        )
    )


def _scheduled(weight_decay: Schedule) -> GradientTransformationExtraArgs:
    def prepare(step: Step, count: Array) -> tuple[dict[str, Any], Array]:
        return {"weight_decay": jnp.asarray(weight_decay(count), float)}, increment(
            count
        )

    def leaf(n: Any, g: Array, p: Array) -> Array:
        return g + n.weight_decay * p

    return lift(
        Rule(
            "add_decayed_weights",
            WeightDecaySchedule,
            leaf,
            shared={"count": zero_count},
            prepare=prepare,
            needs=("params",),
            shows=lambda count: {"weight_decay": weight_decay(before(count))},
        )
    )
