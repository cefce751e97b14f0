"""Multiply the updates by a constant, a schedule or the learning rate."""

from typing import NamedTuple

from jax.typing import ArrayLike
from jaxtyping import Array, Int

from .. import check
from ..core import (
    GradientTransformationExtraArgs,
    like_optax,
    Real,
    Rule,
    ScalarOrSchedule,
    Schedule,
    transformation,
)
from ..engine import lift, nothing
from ..numerics import number_or_schedule


@like_optax
class ScaleByScheduleState(NamedTuple):
    """The position in the schedule."""

    count: Int[Array, ""]  # the number of steps taken


def scale_formula(g: Array, *, step_size: Real) -> Array:
    """`u = step_size g`."""
    return step_size * g


@transformation
def scale(step_size: Real) -> GradientTransformationExtraArgs:
    """`u = step_size g`.

    Args:
        step_size: the factor.
    """
    (step_size,) = check.real("scale", step_size=step_size)
    return lift(Rule("scale", scale_formula, numbers={"step_size": step_size}))


@transformation
def scale_by_schedule(step_size_fn: Schedule | None) -> GradientTransformationExtraArgs:
    """`u = step_size_fn(t) g`, where `t` counts the updates from 0.

    Args:
        step_size_fn: a schedule, count -> factor.

    >>> import jax.numpy as jnp, steepest
    >>> tx = steepest.scale_by_schedule(lambda t: 1 / (1 + t.astype(float)))
    >>> g = jnp.array([1.0])
    >>> u, state = tx.update(g, tx.init(g))
    >>> u, state = tx.update(g, state)
    >>> float(u[0])
    0.5
    """
    if step_size_fn is None:
        step_size_fn = _no_schedule
    check.function("scale_by_schedule", step_size_fn=step_size_fn)
    return lift(
        Rule(
            "scale_by_schedule",
            scale_formula,
            numbers={"step_size": step_size_fn},
            counted=ScaleByScheduleState,
        )
    )


def _no_schedule(count: ArrayLike) -> Array:
    """Stands for `None`: as in Optax, this is an error only when it is called."""
    raise TypeError(
        "scale_by_schedule: step_size_fn is None, expected a function of the "
        "count. Pass a schedule, such as `steepest.constant_schedule(0.1)`."
    )


def descent_formula(g: Array, *, learning_rate: Real) -> Array:
    """`u = -learning_rate g`."""
    return -learning_rate * g


def ascent_formula(g: Array, *, learning_rate: Real) -> Array:
    """`u = learning_rate g`."""
    return learning_rate * g


@transformation
def scale_by_learning_rate(
    learning_rate: ScalarOrSchedule | None = None, *, flip_sign: bool = True
) -> GradientTransformationExtraArgs:
    """`u = -learning_rate g`: the last transformation of an optimizer.

    Args:
        learning_rate: a number or a schedule; with `None`, the updates and their sign
            are unchanged.
        flip_sign: whether to multiply by `-learning_rate`, which goes downhill, or by
            `learning_rate`.
    """
    name = "scale_by_learning_rate"
    check.flag(name, flip_sign=flip_sign)
    if learning_rate is None:
        return nothing()
    rate = number_or_schedule(check.finite, name, learning_rate=learning_rate)
    return lift(
        Rule(
            name,
            descent_formula if flip_sign else ascent_formula,
            numbers={"learning_rate": rate},
            counted=ScaleByScheduleState,
        )
    )
