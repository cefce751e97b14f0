"""Fromage.

Bernstein et al., On the distance between two neural networks and the stability of
learning, 2020, arXiv:2002.03432
"""

from collections.abc import Callable
from functools import partial

import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array

from .. import check
from ..combine import chain
from ..core import (
    AxisName,
    GradientTransformationExtraArgs,
    Real,
    Rule,
    ScalarOrSchedule,
    Schedule,
)
from ..engine import lift, optimizer
from ..transforms import (
    add_decayed_weights,
    scale_by_learning_rate,
    scale_by_trust_ratio,
    WeightDecaySchedule,
)


@optimizer
def fromage(
    learning_rate: ScalarOrSchedule,
    min_norm: Real = 1e-6,
    *,
    axis_name: AxisName = None,
    memory_dtype: DTypeLike | None = None,
    keep_count: bool = False,
) -> GradientTransformationExtraArgs:
    """Fromage: `p <- (p - learning_rate |p| g / |g|) / sqrt(1 + learning_rate^2)`.

    Every leaf turns by the same angle. The root preserves its norm: without it, steps
    orthogonal to `p` would make the norm of `p` grow at every step.

    Args:
        learning_rate: a number, or a schedule (a function of the step count).
        min_norm: lower bound on `|p|` in the step, so that a leaf can leave zero.
        axis_name: inside `jax.shard_map`, the mesh axes over which the params are
            sharded. Without it, each device measures only its own shard.
        memory_dtype: dtype of the arrays in the state that have no option of their own,
            such as `mu_dtype`, or where it is `None`; by default that of the params, or
            wider. With "int8", "int4" or "float8", averages for large matrices are
            stored in 8 or 4 bits: see `keeping`.
        keep_count: whether to count the steps even if the learning rate is a number, so
            that a schedule can replace it later.

    >>> import jax.numpy as jnp, steepest
    >>> tx = steepest.fromage(learning_rate=1.0)
    >>> p = jnp.array([3.0, 4.0])
    >>> u, state = tx.update(jnp.array([4.0, -3.0]), tx.init(p), p)
    >>> round(float(jnp.linalg.norm(p + u)), 3)
    5.0
    """
    if callable(learning_rate):
        along = scale_by_learning_rate(partial(_at, learning_rate, _shorter))
        back = add_decayed_weights(partial(_at, learning_rate, _growth))
    else:
        (eta,) = check.finite("fromage", learning_rate=learning_rate)
        along, back = scale_by_learning_rate(_shorter(eta)), _add(_growth(eta))
    return chain(scale_by_trust_ratio(min_norm, axis_name=axis_name), along, back)


def _at(schedule: Schedule, f: Callable[[Real], Real], count: Array) -> Real:
    """`f(schedule(count))`."""
    return f(jnp.asarray(schedule(count), float))


def _shorter(eta: Real) -> Real:
    """`eta / sqrt(1 + eta^2)`."""
    return eta / (1 + eta * eta) ** 0.5


def _growth(eta: Real) -> Real:
    """`1 / sqrt(1 + eta^2) - 1`, written to avoid cancellation for small `eta`."""
    r = (1 + eta * eta) ** 0.5
    return -(eta * eta) / (r * (1 + r))


def growth_formula(g: Array, p: Array, *, weight_decay: Real) -> Array:
    """`u = g + weight_decay p`, where `weight_decay` is negative."""
    return g + weight_decay * p


def _add(growth: Real) -> GradientTransformationExtraArgs:
    """`u = g + growth p`, without a warning that `growth` is negative."""
    numbers, counted = {"weight_decay": growth}, WeightDecaySchedule
    return lift(Rule("fromage", growth_formula, numbers=numbers, counted=counted))
