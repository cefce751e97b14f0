"""Projection onto the simplex.

Duchi, Shalev-Shwartz, Singer and Chandra, Efficient projections onto the l1-ball for
learning in high dimensions, 2008
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Num, Shaped

from ..core import Real
from ._precision import is_inexact, wide_dtype


def simplex(x: Shaped[Array, " n"], scale: Real = 1.0) -> Float[Array, " n"]:
    """The `y` nearest to `x` among those with `y >= 0` and `sum y = scale`.

        y   = max(x - tau, 0)
        tau = (sum of the k largest of x - scale) / k

    where `k` is the largest number for which the `k`-th largest entry exceeds `tau`.
    Sorting finds `k`; the derivative goes through the sum, not through the sort. The
    result is in float64 if `x` is, else in float32, also for half precision.

    Args:
        x: a vector with at least one entry.
        scale: the sum of `y`, positive.
    """
    if x.shape[0] == 0:
        raise IndexError(
            "simplex: x has shape (0,), expected at least one entry: the simplex of no "
            "entries is empty."
        )
    x = x.astype(wide_dtype([x]) if is_inexact(x) else float)
    scale = jnp.asarray(scale, x.dtype)
    # Shifting all of x changes only the rounding: the largest entry becomes zero.
    x = x - jax.lax.stop_gradient(jnp.max(x))
    inside = _inside(jax.lax.stop_gradient(x), jax.lax.stop_gradient(scale))
    tau = (jnp.sum(jnp.where(inside, x, 0)) - scale) / jnp.sum(inside, dtype=x.dtype)
    return jax.nn.relu(x - tau)


def _inside(x: Float[Array, " n"], scale: Num[Array, ""]) -> Shaped[Array, " n"]:
    """Which entries of the result are positive; the largest always is."""
    down = -jnp.sort(-x)
    k = jnp.arange(1, x.shape[0] + 1, dtype=x.dtype)
    # -inf is outside, and must not enter the sums below: -inf + inf is NaN.
    down = jnp.maximum(down, -2 * jnp.abs(scale) - 1)
    count = jnp.sum(scale + k * down > jnp.cumsum(down))
    return (x >= down[jnp.maximum(count, 1) - 1]) | (x == 0)
