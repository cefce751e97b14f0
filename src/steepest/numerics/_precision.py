"""The precision of arrays, and the precision to compute in."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Inexact


def is_inexact(x: Any) -> bool:
    """Whether `x` is an array with a floating or complex dtype."""
    return hasattr(x, "dtype") and jnp.issubdtype(x.dtype, jnp.inexact)


def wide_dtype(arrays: Sequence[Any]) -> np.dtype:
    """The real dtype to compute in: float64 if any array has it, else float32."""
    bits = [jnp.finfo(x.dtype).bits for x in arrays if is_inexact(x)]
    return jnp.dtype(jnp.float64 if 64 in bits else jnp.float32)


def limited(g: Inexact[Array, "..."]) -> Inexact[Array, "..."]:
    """`g`, with elements so large that sums of squares would overflow cut off.

    In float32, that is at 7e16: a matrix of them has squares that sum to 3e38.
    Infinities stay, so that a broken gradient still shows.

    Args:
        g: an array, such as a gradient.
    """
    if jnp.iscomplexobj(g):
        return jax.lax.complex(limited(g.real), limited(g.imag))
    most = 2.0 ** (7 * jnp.finfo(g.dtype).maxexp // 16)
    return jnp.where(jnp.isinf(g), g, jnp.clip(g, -most, most))
