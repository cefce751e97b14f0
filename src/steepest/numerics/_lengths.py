"""Norms of one array: exactly zero at zero, with gradient zero there."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Inexact, Num

from ..core import MeshAxes
from ._devices import parts_over, split_over
from ._moments import abs_sq
from ._norms import sum_of_squares
from ._precision import wide_dtype
from ._products import quotient


@jax.custom_jvp
def sqrt_or_zero(x: Num[Array, "..."] | float) -> Num[Array, "..."]:
    """`sqrt(x)` with derivative 0 at 0, where that of `sqrt` is infinite."""
    # Not `jnp.where`: XLA would repeat the choice for every element that uses a norm.
    return jnp.sqrt(x)


@sqrt_or_zero.defjvp
def _sqrt_or_zero_jvp(primals: Any, tangents: Any) -> tuple[Array, Array]:
    (x,), (t,) = primals, tangents
    y = sqrt_or_zero(x)
    return y, quotient(t / 2, y)


def length(x: Inexact[Array, "..."], axes: MeshAxes | None = None) -> Float[Array, ""]:
    """`|x|`, the Euclidean norm over all devices."""
    return sqrt_or_zero(sum_of_squares(x, axes))


def rms(x: Inexact[Array, "..."], axes: MeshAxes | None = None) -> Float[Array, ""]:
    """The root mean square; 0 for an empty array."""
    size = x.size * parts_over(split_over(axes, x))
    return sqrt_or_zero(sum_of_squares(x, axes) / max(size, 1))


def squares(x: Any) -> Float[Array, "..."]:
    """`|x|^2` of an array of any dtype, in float32 or wider."""
    x = jnp.asarray(x)
    return abs_sq(x if jnp.iscomplexobj(x) else x.astype(wide_dtype([x])))
