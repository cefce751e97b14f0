"""Force an order of computation that the compiler would not choose."""

import jax.numpy as jnp
from jaxtyping import Array, Inexact


def after(x: Inexact[Array, "..."], *first: Inexact[Array, "..."]) -> Array:
    """`x`, written only after all of `first` have been computed.

    XLA on a CPU copies a buffer before the step if something may still read it when it
    is overwritten. If `first` holds everything that reads it, no copy is needed. The
    condition below is always true and costs nothing: the compiler simplifies it away,
    but only after it has fixed the order.

    Args:
        x: the new value of a memory.
        first: arrays of the same shape, or numbers, computed from the old memory.
    """
    for y in first:
        x = jnp.where((y == y) | (y != y), x, jnp.zeros_like(x))
    return x
