"""Lengths of one array, and roots that can be differentiated."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Inexact

from ._moments import abs_sq


@jax.custom_jvp
def root(x: Float[Array, "..."]) -> Float[Array, "..."]:
    """`sqrt(x)`, with slope 0 where `x` is 0.

    The true slope there is infinite, and infinity times the zero that follows it in
    the chain rule is NaN: whoever differentiates through a training step with one
    zero gradient would get it.
    """
    return jnp.sqrt(x)


@root.defjvp
def _root_jvp(
    primals: tuple[Array], tangents: tuple[Array]
) -> tuple[Float[Array, "..."], Float[Array, "..."]]:
    (x,), (dx,) = primals, tangents
    y = root(x)
    away = y > 0
    return y, jnp.where(away, dx / (2 * jnp.where(away, y, 1)), 0)


def sum_of_squares(x: Inexact[Array, "..."]) -> Float[Array, ""]:
    """`sum |x|^2`, the square of the Euclidean length."""
    return jnp.sum(abs_sq(x))
