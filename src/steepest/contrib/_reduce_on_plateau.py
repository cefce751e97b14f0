"""Reduce the learning rate when the loss stops improving."""

from typing import NamedTuple

import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float, Int

from .. import check
from ..core import (
    gives,
    GradientTransformationExtraArgs,
    like_optax,
    Real,
    Rule,
    transformation,
)
from ..engine import lift
from ..numerics import increment, scalar, zero_count


@like_optax
class ReduceLROnPlateauState(NamedTuple):
    """State: the recent and best losses, and the current scale."""

    scale: Float[Array, ""]
    best_value: Float[Array, ""]
    plateau_count: Int[Array, ""]  # averages in a row without improvement
    cooldown_count: Int[Array, ""]  # averages left to wait after a reduction
    count: Int[Array, ""]  # losses in the current average
    avg_value: Float[Array, ""]


@gives("scale")
def plateau_scale(
    avg_value: Array,
    best_value: Array,
    cooldown_count: Array,
    count: Array,
    plateau_count: Array,
    scale: Array,
    *,
    factor: Real,
    patience: Real,
    rtol: Real,
    atol: Real,
    cooldown: Real,
    accumulation_size: Real,
    min_scale: Real,
    value: ArrayLike,
) -> tuple[dict[str, Array] | Array, ...]:
    """The `scale` of this step, from the loss `value` and the state."""
    now = increment(count)
    (value,) = check.loss("reduce_on_plateau", value=value)
    sums = count.astype(avg_value.dtype) * avg_value + value
    average = sums / now.astype(avg_value.dtype)
    # At first the best is infinite, and with rtol = 1 the product would be NaN.
    bar = jnp.where(jnp.isinf(best_value), best_value, (1 - rtol) * best_value - atol)
    better = average < bar
    no_better = jnp.where(better, 0, increment(plateau_count))
    cooling = cooldown_count > 0
    fall = ~cooling & (no_better == patience)
    pause = jnp.asarray(cooldown, cooldown_count.dtype)
    pause = jnp.where(fall, pause, jnp.maximum(cooldown_count - 1, 0))
    lower = jnp.maximum(jnp.where(fall, factor * scale, scale), min_scale)

    due = now == accumulation_size
    scale = jnp.where(due & ~cooling, lower, scale)
    return (
        {"scale": scale},
        jnp.where(due, 0, average),
        jnp.where(due & better, average, best_value),
        jnp.where(due, pause, cooldown_count),
        jnp.where(due, 0, now),
        jnp.where(due, jnp.where(cooling | fall, 0, no_better), plateau_count),
        scale,
    )


def plateau_formula(g: Array, *, scale: Array) -> Array:
    """`u = scale g`."""
    return scale * g


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
    """Multiply by a `scale` that is reduced when the loss stops improving.

    `u = scale g`. Every `accumulation_size` steps, compare their average loss with the
    best:

        better                  if average < (1 - rtol) best - atol
        scale <- factor scale   after `patience` averages in a row that are not better

    Then `scale` does not change for `cooldown` averages. `update` needs the loss, as
    `value=...`.

    Args:
        factor: multiplies `scale` at a reduction; between 0 and 1.
        patience: the number of averages without improvement before a reduction, at
            least 1.
        rtol: required improvement relative to the best; at most 1.
        atol: required absolute improvement. One of `rtol` and `atol` must be above 0.
        cooldown: the number of averages to wait after a reduction.
        accumulation_size: the number of losses in an average.
        min_scale: the smallest `scale`.

    >>> import jax.numpy as jnp, steepest
    >>> tx = steepest.contrib.reduce_on_plateau(factor=0.5, patience=1)
    >>> g = jnp.array([1.0])
    >>> state = tx.init(g)
    >>> for _ in range(2):
    ...     u, state = tx.update(g, state, value=3.0)
    >>> float(u[0])
    0.5
    """
    name = "reduce_on_plateau"
    (factor,) = check.inside.must(name, factor=factor)
    (rtol,) = check.fraction.must(name, rtol=rtol)
    (atol,) = check.amount.must(name, atol=atol)
    (min_scale,) = check.amount(name, min_scale=min_scale)
    if not any(isinstance(x, Array) or x > 0 for x in (rtol, atol)):
        raise ValueError(
            f"{name}: rtol and atol are both 0, expected one of them above 0."
        )
    patience, size = check.period(
        name, patience=patience, accumulation_size=accumulation_size
    )
    (cooldown,) = check.whole(name, cooldown=cooldown)

    return lift(
        Rule(
            name,
            plateau_formula,
            ReduceLROnPlateauState,
            shared={
                "avg_value": scalar(0.0),
                "best_value": scalar(float("inf")),
                "cooldown_count": zero_count,
                "count": zero_count,
                "plateau_count": zero_count,
                "scale": scalar(1.0),
            },
            numbers={
                "factor": factor,
                "patience": patience,
                "rtol": rtol,
                "atol": atol,
                "cooldown": cooldown,
                "accumulation_size": size,
                "min_scale": min_scale,
            },
            per_step=plateau_scale,
            extra=("value",),
        )
    )
