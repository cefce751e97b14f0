"""The recent values of a number, and a test for outliers."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from ..core import Real
from ..numerics import zero_count


class History(NamedTuple):
    """The last values of a number, the newest at the end."""

    last: Float[Array, " window"]  # zeros until it is filled
    seen: Int[Array, ""]  # how many values it holds


def no_history(window: int) -> History:
    """An empty history with room for `window` values."""
    return History(jnp.zeros((window,), float), zero_count())


def longer(history: History, x: Array, add: Array, restart: Array) -> History:
    """Append `x` to the history if `add` is true.

    Args:
        history: the values so far.
        x: the new value.
        add: whether to append it.
        restart: whether to drop all earlier values.
    """
    older = jnp.where(restart, jnp.zeros_like(history.last), history.last)
    last = jnp.concatenate([older[1:], x.astype(older.dtype)[None]])
    seen = jnp.minimum(jnp.where(restart, 0, history.seen) + 1, len(last))
    return History(
        jnp.where(add, last, history.last), jnp.where(add, seen, history.seen)
    )


def is_high(x: Array, history: History, sigmas: Real, margin: Real) -> Bool[Array, ""]:
    """Whether `x` is far above its recent values.

        x > mean + max(sigmas std, margin |mean|)

    If all recent values are zero there is no scale, and the result is false.

    Args:
        x: the new value.
        history: the values before it.
        sigmas, margin: as for `guard`.
    """
    window = len(history.last)
    known = jnp.arange(window, dtype=jnp.int32) >= window - history.seen
    n = jnp.maximum(history.seen, 1).astype(x.dtype)
    # Divide by the largest first: squares of float32 numbers overflow at 2e19.
    top = jnp.max(jnp.abs(history.last))
    last = history.last / jnp.where(top > 0, top, 1)
    mean = jnp.sum(last) / n
    std = jnp.sqrt(jnp.sum(jnp.where(known, (last - mean) ** 2, 0)) / n)
    limit = mean + jnp.maximum(sigmas * std, margin * jnp.abs(mean))
    return (top > 0) & (x > top * limit)
