"""How many digits an array has, and how many to compute with."""

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp


def is_inexact(x: Any) -> bool:
    """Whether `x` is an array of real or complex numbers, not of integers or keys."""
    return hasattr(x, "dtype") and jnp.issubdtype(x.dtype, jnp.inexact)


def wide_dtype(arrays: Sequence[Any]) -> Any:
    """The real dtype to compute in: float32, or float64 where one of them has it."""
    bits = [jnp.finfo(x.dtype).bits for x in arrays if is_inexact(x)]
    return jnp.dtype(jnp.float64 if 64 in bits else jnp.float32)
