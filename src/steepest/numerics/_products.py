"""Products and quotients of one array with another."""

import jax.numpy as jnp
from jaxtyping import Array, Float, Inexact


def inner(x: Inexact[Array, "..."], y: Inexact[Array, "..."]) -> Float[Array, ""]:
    """`<x, y>`, the sum of the products; of complex arrays its real part."""
    if jnp.isrealobj(x) and jnp.isrealobj(y):
        return jnp.sum(x * y)
    return jnp.sum(jnp.real(jnp.conj(x) * y))


def quotient(x: Inexact[Array, "..."], y: Float[Array, "..."]) -> Inexact[Array, "..."]:
    """`x / y`, and 0 where `y` is 0: value and slopes are finite there."""
    some = y != 0
    # Twice: the slope of what is not chosen is taken too, and must be finite.
    return jnp.where(some, x / jnp.where(some, y, 1), 0)
