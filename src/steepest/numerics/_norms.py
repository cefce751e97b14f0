"""Lengths of one array, and roots that can be differentiated."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Inexact

from ..core import MeshAxes
from ._devices import split_over, sum_over
from ._moments import abs_sq


def root(x: Float[Array, "..."]) -> Float[Array, "..."]:
    """`sqrt(x)`, where `x` is at least the smallest number that has all its digits.

    At 0 the slope of the square root is infinite, and infinity times the zero that
    follows it in the chain rule is NaN: whoever differentiates through a training step
    with one zero gradient would get it. Here the slope is 0, and the value 1e-19.
    """
    return jnp.sqrt(jnp.maximum(x, jnp.finfo(x.dtype).tiny))


def cube_root(x: Float[Array, "..."]) -> Float[Array, "..."]:
    """`x^(1/3)`, where `x` is at least the smallest number that has all its digits.

    Flat at 0, as `root` is.
    """
    info = jnp.finfo(x.dtype)
    return _cube_root(jnp.clip(x, info.tiny, info.max))


@jax.custom_jvp
def _cube_root(x: Array) -> Array:
    """The first digits by a logarithm, the others by a step of Newton's.

    On a CPU `jnp.cbrt` takes several times as long.
    """
    y = jnp.exp(jnp.log(x) / 3)
    return (2 * y + x / (y * y)) / 3


@_cube_root.defjvp
def _cube_root_jvp(primals: Any, tangents: Any) -> tuple[Array, Array]:
    (x,), (t,) = primals, tangents
    y = _cube_root(x)
    return y, t * (y / x / 3)


def gradient_norm_squared(g: Inexact[Array, "..."]) -> Float[Array, ""]:
    """`sum |g|^2`: the `measure` of a rule that needs the norm of the gradient."""
    return jnp.sum(abs_sq(g))


def sum_of_squares(
    x: Inexact[Array, "..."], axes: MeshAxes | None = None
) -> Float[Array, ""]:
    """`sum |x|^2`, the square of the Euclidean length; with `axes`, of all devices."""
    return sum_over(split_over(axes, x), jnp.sum(abs_sq(x)))
