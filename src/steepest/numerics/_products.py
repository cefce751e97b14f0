"""Inner products and safe quotients."""

import jax.numpy as jnp
from jaxtyping import Array, Float, Inexact


def inner(x: Inexact[Array, "..."], y: Inexact[Array, "..."]) -> Float[Array, ""]:
    """`<x, y>`, the inner product; its real part for complex arrays."""
    if jnp.isrealobj(x) and jnp.isrealobj(y):
        return jnp.sum(x * y)
    return jnp.sum(jnp.real(jnp.conj(x) * y))


def quotient(x: Inexact[Array, "..."], y: Float[Array, "..."]) -> Inexact[Array, "..."]:
    """`x / y`, and 0 where `y` is 0, with finite derivatives there."""
    some = y != 0
    # Two `where`s: the branch not taken is differentiated too, and must be finite.
    return jnp.where(some, x / jnp.where(some, y, 1), 0)
