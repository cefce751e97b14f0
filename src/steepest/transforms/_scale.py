"""Multiplying by a number: a constant, a schedule, the learning rate."""

from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Int

from ..core import (
    EmptyState,
    finite,
    flag,
    function,
    GradientTransformationExtraArgs,
    like_optax,
    Real,
    real,
    Rule,
    ScalarOrSchedule,
    Schedule,
    Step,
)
from ..engine import lift, nothing
from ..numerics import before, increment, zero_count


@like_optax
class ScaleByScheduleState(NamedTuple):
    """How far the schedule has come."""

    count: Int[Array, ""]


def scale(step_size: Real) -> GradientTransformationExtraArgs:
    """`u = step_size g`.

    Args:
        step_size: any number.
    """
    (step_size,) = real("scale", step_size=step_size)

    def leaf(n: Any, g: Array, p: Array | None) -> Array:
        return step_size * g

    return lift(Rule("scale", EmptyState, leaf))


def scale_by_schedule(step_size_fn: Schedule | None) -> GradientTransformationExtraArgs:
    """`u = step_size_fn(t) g`, where `t` counts the updates from 0.

    Args:
        step_size_fn: a function of the count.

    >>> import steepest
    >>> tx = steepest.scale_by_schedule(lambda t: 1 / (1 + t.astype(float)))
    >>> g = jnp.array([1.0])
    >>> u, state = tx.update(g, tx.init(g))
    >>> u, state = tx.update(g, state)
    >>> float(u[0])
    0.5
    """

    if step_size_fn is None:  # as in Optax, an error only if it is used

        def later(count: Any) -> Any:
            raise TypeError(
                "scale_by_schedule: step_size_fn is None, expected a function of the "
                "count. Pass a schedule, such as `steepest.constant_schedule(0.1)`."
            )

        return scale_by_schedule(later)
    function("scale_by_schedule", step_size_fn=step_size_fn)
    return lift(_scheduled("scale_by_schedule", step_size_fn, "step_size", 1))


def scale_by_learning_rate(
    learning_rate: ScalarOrSchedule | None = None, *, flip_sign: bool = True
) -> GradientTransformationExtraArgs:
    """`u = -learning_rate g`: the last link of an optimizer.

    Args:
        learning_rate: a number or a function of the count; `None` for none, and then
            the updates pass as they are.
        flip_sign: whether to go down, `-`, or up.
    """
    who = "scale_by_learning_rate"
    flag(who, flip_sign=flip_sign)
    sign = -1 if flip_sign else 1
    if learning_rate is None:
        return nothing()
    if callable(learning_rate):
        return lift(_scheduled(who, learning_rate, "learning_rate", sign))
    (rate,) = finite(who, learning_rate=learning_rate)

    def leaf(n: Any, g: Array, p: Array | None) -> Array:
        return sign * rate * g

    return lift(
        Rule(
            who,
            EmptyState,
            leaf,
            shows=lambda: {"learning_rate": rate},
            Counted=ScaleByScheduleState,
        )
    )


def _scheduled(who: str, f: Schedule, name: str, sign: int) -> Rule:
    """Multiply by `sign f(t)`, which is shown by this name."""

    def prepare(step: Step, count: Array) -> tuple[dict[str, Any], Array]:
        return {"step_size": sign * jnp.asarray(f(count), float)}, increment(count)

    def leaf(n: Any, g: Array, p: Array | None) -> Array:
        return n.step_size * g

    return Rule(
        who,
        ScaleByScheduleState,
        leaf,
        shared={"count": zero_count},
        prepare=prepare,
        shows=lambda count: {name: f(before(count))},
    )
