"""Squared norms of one array, and roots with finite derivatives."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Inexact

from ..core import MeshAxes
from ._devices import split_over, sum_over
from ._moments import abs_sq


def root(x: Float[Array, "..."]) -> Float[Array, "..."]:
    """`sqrt(max(x, tiny))`, where `tiny` is the smallest normal number of the dtype.

    At 0 the derivative of `sqrt` is infinite, and times the zero that follows in the
    chain rule it is NaN: differentiating through a training step with one zero gradient
    would return NaN. Here the derivative is 0, and the value 1e-19.
    """
    return jnp.sqrt(jnp.maximum(x, jnp.finfo(x.dtype).tiny))


def cube_root(x: Float[Array, "..."]) -> Float[Array, "..."]:
    """`max(x, tiny)^(1/3)`, where `tiny` is the smallest normal number of the dtype.

    The derivative at 0 is 0, as for `root`.
    """
    info = jnp.finfo(x.dtype)
    return _cube_root(jnp.clip(x, info.tiny, info.max))


@jax.custom_jvp
def _cube_root(x: Array) -> Array:
    """The first digits by a logarithm, the others by a Newton step.

    On a CPU `jnp.cbrt` is several times slower.
    """
    y = jnp.exp(jnp.log(x) / 3)
    return (2 * y + x / (y * y)) / 3


@_cube_root.defjvp
def _cube_root_jvp(
    primals: tuple[Array], tangents: tuple[Array]
) -> tuple[Array, Array]:
    (x,), (t,) = primals, tangents
    y = _cube_root(x)
    return y, t * (y / x / 3)


def gradient_norm_squared(g: Inexact[Array, "..."]) -> Float[Array, ""]:
    """`sum |g|^2`: the `measure` of a rule that needs the gradient norm."""
    return jnp.sum(abs_sq(g))


def sum_of_squares(
    x: Inexact[Array, "..."], axes: MeshAxes | None = None
) -> Float[Array, ""]:
    """`sum |x|^2`, the squared Euclidean norm; with `axes`, over all devices."""
    return sum_over(split_over(axes, x), jnp.sum(abs_sq(x)))
