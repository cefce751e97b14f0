"""Exponential moving average of the updates."""

from functools import partial
from typing import NamedTuple

from jax.typing import DTypeLike
from jaxtyping import Array, Int

from .. import check
from ..core import (
    gives,
    GradientTransformationExtraArgs,
    like_optax,
    Param,
    Real,
    Rule,
    transformation,
    Updates,
)
from ..engine import lift
from ..numerics import (
    debias as correction,
    ema as average,
    first_moment,
    holding,
    increment,
    zero_count,
)


@like_optax
class EmaState(NamedTuple):
    """The average so far: one count for the tree, one array per leaf."""

    count: Int[Array, ""]  # t, the number of steps taken
    ema: Updates  # mean of g, in `accumulator_dtype`


@holding("signed")
def first_mean(p: Param, *, dtype: DTypeLike | None) -> Array:
    """Zeros like `p`, in `dtype` if it is not None.

    `memory_dtype` of `keeping` overrides this dtype; it would not override that of a
    `first_moment`.
    """
    return first_moment(dtype)(p)


@gives("c")
def ema_correction(count: Array, *, decay: Real) -> tuple[dict[str, Array], Array]:
    """`c = 1 - decay^t`."""
    t = increment(count)
    return {"c": correction(decay, t)}, t


def ema_formula(g: Array, ema: Array, *, decay: Real) -> tuple[Array, Array]:
    """The moving average, without bias correction."""
    m = average(ema, g, decay)
    return m, m


def debiased_ema_formula(
    g: Array, ema: Array, *, decay: Real, c: Array
) -> tuple[Array, Array]:
    """The moving average, divided by `c = 1 - decay^t`."""
    m = average(ema, g, decay)
    return m / c, m


@transformation
def ema(
    decay: Real, debias: bool = True, accumulator_dtype: DTypeLike | None = None
) -> GradientTransformationExtraArgs:
    """Replace the updates by their exponential moving average.

        m <- decay m + (1 - decay) g
        u  = m / (1 - decay^t)              or, without `debias`, m

    Args:
        decay: decay rate of `m`, in [0, 1).
        debias: whether to apply bias correction, since `m` starts at zero.
        accumulator_dtype: the dtype in which `m` is stored; by default that of the
            params.

    >>> import jax.numpy as jnp, steepest
    >>> tx = steepest.ema(decay=0.9)
    >>> g = jnp.array([1.0])
    >>> u, state = tx.update(g, tx.init(g))
    >>> round(float(u[0]), 3), round(float(state.ema[0]), 3)
    (1.0, 0.1)
    """
    (decay,) = check.fraction("ema", decay=decay)
    check.flag("ema", debias=debias)
    check.dtype("ema", accumulator_dtype=accumulator_dtype)
    return lift(
        Rule(
            "ema",
            debiased_ema_formula if debias else ema_formula,
            EmaState,
            memory={"ema": partial(first_mean, dtype=accumulator_dtype)},
            shared={"count": zero_count},
            numbers={"decay": decay},
            per_step=ema_correction if debias else None,
        )
    )
