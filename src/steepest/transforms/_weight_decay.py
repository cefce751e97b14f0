"""Decoupled weight decay.

Loshchilov and Hutter, Decoupled weight decay regularization, 2019, arXiv:1711.05101
Chen et al., Cautious weight decay, 2025, arXiv:2510.12402
"""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Int

from .. import check
from ..combine import masked
from ..core import (
    GradientTransformationExtraArgs,
    like_optax,
    Real,
    Rule,
    ScalarOrSchedule,
    transformation,
)
from ..engine import lift, MaskOrFn
from ..numerics import number_or_schedule


@like_optax
class WeightDecaySchedule(NamedTuple):
    """The position in the schedule of the weight decay."""

    count: Int[Array, ""]  # the number of steps taken


def decay_formula(g: Array, p: Array, *, weight_decay: Real) -> Array:
    """`u = g + weight_decay p`."""
    return g + weight_decay * p


def cautious_decay_formula(g: Array, p: Array, *, weight_decay: Real) -> Array:
    """`u = g + weight_decay p` where `g p >= 0`, elsewhere `u = g`."""
    # The product of the signs: that of two small numbers would underflow.
    opposed = jnp.real(jnp.sign(g) * jnp.conj(jnp.sign(p))) < 0
    return g + jnp.where(opposed, 0, weight_decay * p)


def no_decay_formula(g: Array, p: Array) -> Array:
    """`u = g`. XLA does not remove `0 p`, since `p` could be infinite."""
    return g


@transformation
def add_decayed_weights(
    weight_decay: ScalarOrSchedule = 0.0, mask: MaskOrFn | None = None
) -> GradientTransformationExtraArgs:
    """`u = g + weight_decay p`.

    Args:
        weight_decay: a number or a schedule.
        mask: the leaves to decay: a tree of booleans, a function of the params that
            returns one, or a regular expression for their paths; by default all.

    >>> import jax.numpy as jnp, steepest
    >>> tx = steepest.add_decayed_weights(0.1)
    >>> g, p = jnp.array([1.0]), jnp.array([5.0])
    >>> u, _ = tx.update(g, tx.init(p), p)
    >>> float(u[0])
    1.5
    """
    return _decay("add_decayed_weights", decay_formula, weight_decay, mask)


@transformation
def add_cautious_weight_decay(
    weight_decay: ScalarOrSchedule = 0.0, mask: MaskOrFn | None = None
) -> GradientTransformationExtraArgs:
    """Cautious weight decay: only where it pulls the same way as the step.

        u = g + weight_decay p      where g p >= 0
        u = g                       elsewhere

    Here `g` is the update before the learning rate, so `p - learning_rate g` moves the
    entries with `g p > 0` towards zero, as the decay does. It takes the place of
    `add_decayed_weights`:

        chain(
            scale_by_adam(),
            add_cautious_weight_decay(0.1),
            scale_by_learning_rate(1e-3),
        )

    Args:
        weight_decay: a number or a schedule.
        mask: the leaves to decay: a tree of booleans, a function of the params that
            returns one, or a regular expression for their paths; by default all.

    >>> import jax.numpy as jnp, steepest
    >>> tx = steepest.add_cautious_weight_decay(0.1)
    >>> g, p = jnp.array([1.0, -1.0]), jnp.array([5.0, 5.0])
    >>> u, _ = tx.update(g, tx.init(p), p)
    >>> u.tolist()
    [1.5, -1.0]
    """
    name = "add_cautious_weight_decay"
    return _decay(name, cautious_decay_formula, weight_decay, mask)


def _decay(
    name: str,
    formula: Callable[..., Array],
    weight_decay: ScalarOrSchedule,
    mask: MaskOrFn | None,
) -> GradientTransformationExtraArgs:
    """A decay with this formula."""
    decay = number_or_schedule(check.finite, name, weight_decay=weight_decay)
    is_off = isinstance(decay, int | float) and decay == 0
    tx = lift(
        Rule(
            name,
            no_decay_formula if is_off else formula,
            numbers={"weight_decay": decay},
            # `keep_count` concerns the learning rate; a constant decay keeps no count.
            counted=WeightDecaySchedule if callable(decay) else None,
        )
    )
    return tx if mask is None else masked(tx, mask)
