"""The order in which things are computed, where it matters and nobody could see it."""

import jax.numpy as jnp
from jaxtyping import Array, Inexact


def after(x: Inexact[Array, "..."], *first: Inexact[Array, "..."]) -> Array:
    """`x`, which is written only when all of `first` are known.

    XLA on a CPU copies a memory before the step if something may still read it when it
    is overwritten. If `first` are all that read it, nothing may. What is said here of
    `first` is always true, and costs nothing: the compiler finds out as well, but only
    after it has decided on the order.

    Args:
        x: what a memory becomes.
        first: of the same shape, or numbers: what is computed from the old memory.
    """
    for y in first:
        x = jnp.where((y == y) | (y != y), x, jnp.zeros_like(x))
    return x
