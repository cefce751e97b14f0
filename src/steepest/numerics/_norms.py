"""Lengths of one array, and roots that can be differentiated."""

import jax.numpy as jnp
from jaxtyping import Array, Float, Inexact

from ._moments import abs_sq


def root(x: Float[Array, "..."]) -> Float[Array, "..."]:
    """`sqrt(x)`, where `x` is at least the smallest number that has all its digits.

    At 0 the slope of the square root is infinite, and infinity times the zero that
    follows it in the chain rule is NaN: whoever differentiates through a training step
    with one zero gradient would get it. Here the slope is 0, and the value 1e-19.
    """
    return jnp.sqrt(jnp.maximum(x, jnp.finfo(x.dtype).tiny))


def sum_of_squares(x: Inexact[Array, "..."]) -> Float[Array, ""]:
    """`sum |x|^2`, the square of the Euclidean length."""
    return jnp.sum(abs_sq(x))
