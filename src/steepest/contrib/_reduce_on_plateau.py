"""A learning rate that falls when the loss does not."""

from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from ..core import (
    amount,
    GradientTransformationExtraArgs,
    inside,
    like_optax,
    loss,
    period,
    Real,
    Rule,
    share,
    Step,
    transformation,
    whole,
)
from ..engine import lift
from ..numerics import increment, scalar, zero_count


@like_optax
class ReduceLROnPlateauState(NamedTuple):
    """What has been seen of the loss, and how far the learning rate has fallen."""

    scale: Float[Array, ""]
    best_value: Float[Array, ""]
    plateau_count: Int[Array, ""]  # averages in a row that were no better
    cooldown_count: Int[Array, ""]  # averages to wait, after it has fallen
    count: Int[Array, ""]  # values in the average
    avg_value: Float[Array, ""]


@transformation
def reduce_on_plateau(
    factor: Real = 0.1,
    patience: Real = 10,
    rtol: Real = 1e-4,
    atol: Real = 0.0,
    cooldown: Real = 0,
    accumulation_size: Real = 1,
    min_scale: Real = 0.0,
) -> GradientTransformationExtraArgs:
    """`u = scale g`, with a `scale` that falls where the loss has stopped falling.

    Every `accumulation_size` steps their average loss is compared with the best:

        better                  if average < (1 - rtol) best - atol
        scale <- factor scale   if it was not, `patience` times in a row

    and then it falls no more for `cooldown` averages. The loss is the extra argument
    `value` of `update`.

    Args:
        factor: by which `scale` falls, between 0 and 1.
        patience: how many averages may be no better, at least 1.
        rtol: how much better an average must be, of the best; at most 1.
        atol: the same, in the units of the loss. One of the two is above 0.
        cooldown: how many averages to wait after a fall.
        accumulation_size: how many losses to average.
        min_scale: below which `scale` does not fall.

    >>> import steepest
    >>> tx = steepest.contrib.reduce_on_plateau(factor=0.5, patience=1)
    >>> g = jnp.array([1.0])
    >>> state = tx.init(g)
    >>> for _ in range(2):
    ...     u, state = tx.update(g, state, value=3.0)
    >>> float(u[0])
    0.5
    """
    who = "reduce_on_plateau"
    (factor,) = inside.must(who, factor=factor)
    (rtol,) = share.must(who, rtol=rtol)
    (atol,) = amount.must(who, atol=atol)
    (min_scale,) = amount(who, min_scale=min_scale)
    if not any(isinstance(x, Array) or x > 0 for x in (rtol, atol)):
        raise ValueError(
            f"{who}: rtol and atol are both 0, and one of them above 0 is wanted."
        )
    patience, size = period(who, patience=patience, accumulation_size=accumulation_size)
    (cooldown,) = whole(who, cooldown=cooldown)

    def prepare(
        step: Step,
        average: Array,
        best: Array,
        waiting: Array,
        count: Array,
        plateau: Array,
        scale: Array,
    ) -> tuple[Any, ...]:
        now = increment(count)
        (value,) = loss(who, value=step.extra["value"])
        sums = count.astype(average.dtype) * average + value
        average = sums / now.astype(average.dtype)
        # At first the best is infinite, and of that there is no fraction.
        bar = jnp.where(jnp.isinf(best), best, (1 - rtol) * best - atol)
        better = average < bar
        no_better = jnp.where(better, 0, increment(plateau))
        cooling = waiting > 0
        fall = ~cooling & (no_better == patience)
        pause = jnp.asarray(cooldown, waiting.dtype)
        pause = jnp.where(fall, pause, jnp.maximum(waiting - 1, 0))
        lower = jnp.maximum(jnp.where(fall, factor * scale, scale), min_scale)

        due = now == size
        scale = jnp.where(due & ~cooling, lower, scale)
        return (
            {"scale": scale},
            jnp.where(due, 0, average),
            jnp.where(due & better, average, best),
            jnp.where(due, pause, waiting),
            jnp.where(due, 0, now),
            jnp.where(due, jnp.where(cooling | fall, 0, no_better), plateau),
            scale,
        )

    def leaf(n: Any, g: Array, p: Array | None) -> Array:
        return n.scale * g

    return lift(
        Rule(
            who,
            ReduceLROnPlateauState,
            leaf,
            shared={
                "avg_value": scalar(0.0),
                "best_value": scalar(float("inf")),
                "cooldown_count": zero_count,
                "count": zero_count,
                "plateau_count": zero_count,
                "scale": scalar(1.0),
            },
            prepare=prepare,
            needs=("value",),
        )
    )
