"""Half precision: sums and powers overflow in it, so they are taken in float32."""

from typing import Any

import jax
import jax.numpy as jnp

from ._precision import is_inexact


def at_least_float32(x: Any) -> Any:
    """`x` as an array, in float32 where it is in half precision or narrower."""
    x = jnp.asarray(x)
    narrow = is_inexact(x) and jnp.finfo(x.dtype).bits < 32
    return x.astype(jnp.float32) if narrow else x


def promoted(*xs: Any) -> Any:
    """The dtype in which these meet by JAX's standard rules, also where it is strict.

    Args:
        xs: arrays, numbers and dtypes. Python numbers take the dtype of the others.
    """
    with jax.numpy_dtype_promotion("standard"):
        return jnp.result_type(*xs)
