"""Half precision: sums and powers overflow, so they are computed in float32."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike, DTypeLike
from jaxtyping import Array

from ._precision import is_inexact


def at_least_float32(x: ArrayLike) -> Array:
    """`x` as an array; half precision and narrower dtypes become float32."""
    x = jnp.asarray(x)
    narrow = is_inexact(x) and jnp.finfo(x.dtype).bits < 32
    return x.astype(jnp.float32) if narrow else x


def promoted(*xs: ArrayLike | DTypeLike) -> np.dtype:
    """The common dtype by JAX's standard promotion rules, even in strict mode.

    Args:
        xs: arrays, numbers and dtypes. Python numbers take the dtype of the others.
    """
    with jax.numpy_dtype_promotion("standard"):
        return jnp.result_type(*xs)
