"""A mean of the updates."""

from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Int

from ..core import (
    dtype,
    flag,
    fraction,
    GradientTransformationExtraArgs,
    like_optax,
    Real,
    Rule,
    Step,
    transformation,
    Updates,
)
from ..engine import lift
from ..numerics import (
    debias as correction,
    ema as average,
    first_moment,
    increment,
    is_inexact,
    zero_count,
)


@like_optax
class EmaState(NamedTuple):
    """What the mean remembers: a count for the tree, an array for each leaf."""

    count: Int[Array, ""]  # t, the steps taken
    ema: Updates  # mean of g, in `accumulator_dtype`


@transformation
def ema(
    decay: Real, debias: bool = True, accumulator_dtype: Any = None
) -> GradientTransformationExtraArgs:
    """An exponential moving average.

        m <- decay m + (1 - decay) g
        u  = m / (1 - decay^t)              or, without `debias`, m

    Args:
        decay: how slowly `m` forgets, in [0, 1).
        debias: whether to undo that `m` began at zero.
        accumulator_dtype: the dtype `m` is kept in; by default that of the params.

    >>> import steepest
    >>> tx = steepest.ema(decay=0.9)
    >>> g = jnp.array([1.0])
    >>> u, state = tx.update(g, tx.init(g))
    >>> round(float(u[0]), 3), round(float(state.ema[0]), 3)
    (1.0, 0.1)
    """
    (decay,) = fraction("ema", decay=decay)
    flag("ema", debias=debias)
    dtype("ema", accumulator_dtype=accumulator_dtype)

    def begin(p: Any) -> Array:
        own = None if is_inexact(p) else jnp.float32  # no mean of integers is one
        return first_moment(accumulator_dtype or own)(p)

    def prepare(step: Step, count: Array) -> tuple[dict[str, Array], Array]:
        t = increment(count)
        return {"c": correction(decay, t)}, t

    def leaf(n: Any, g: Array, p: Array | None, m: Array) -> tuple[Array, Array]:
        m = average(m, g, decay)
        return m / n.c if debias else m, m

    return lift(
        Rule(
            "ema",
            EmaState,
            leaf,
            remember={"ema": begin},
            shared={"count": zero_count},
            prepare=prepare,
        )
    )
