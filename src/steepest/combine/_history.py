"""What a number was in the last steps, and whether it is still like that."""

from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from ..numerics import zero_count


class History(NamedTuple):
    """The last values of a number, the newest at the end."""

    last: Float[Array, " window"]  # zeros where nothing is known yet
    seen: Int[Array, ""]  # how many are known


def no_history(window: int) -> History:
    """Nothing known, and room for so many."""
    return History(jnp.zeros((window,), float), zero_count())


def longer(history: History, x: Array, add: Array, anew: Array) -> History:
    """The history with `x` at its end, if it is to be added.

    Args:
        history: what was known.
        x: what is known now.
        add: whether to add it.
        anew: whether to forget all before it.
    """
    older = jnp.where(anew, jnp.zeros_like(history.last), history.last)
    last = jnp.concatenate([older[1:], x.astype(older.dtype)[None]])
    seen = jnp.minimum(jnp.where(anew, 0, history.seen) + 1, len(last))
    return History(
        jnp.where(add, last, history.last), jnp.where(add, seen, history.seen)
    )


def is_high(x: Array, history: History, sigmas: Any, margin: Any) -> Bool[Array, ""]:
    """Whether `x` is above what is usual.

        x > mean + max(sigmas std, margin |mean|)

    After nothing but zeros there is no scale, and nothing is too high.

    Args:
        x: a number.
        history: what it was before.
        sigmas, margin: as for `guard`.
    """
    window = len(history.last)
    known = jnp.arange(window, dtype=jnp.int32) >= window - history.seen
    n = jnp.maximum(history.seen, 1).astype(x.dtype)
    # In parts of the largest: squares of float32 numbers overflow at 2e19.
    top = jnp.max(jnp.abs(history.last))
    last = history.last / jnp.where(top > 0, top, 1)
    mean = jnp.sum(last) / n
    std = jnp.sqrt(jnp.sum(jnp.where(known, (last - mean) ** 2, 0)) / n)
    limit = mean + jnp.maximum(sigmas * std, margin * jnp.abs(mean))
    return (top > 0) & (x > top * limit)
