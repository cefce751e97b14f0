"""The precision of arrays, and the precision to compute in."""

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np


def is_inexact(x: Any) -> bool:
    """Whether `x` is an array with a floating or complex dtype."""
    return hasattr(x, "dtype") and jnp.issubdtype(x.dtype, jnp.inexact)


def wide_dtype(arrays: Sequence[Any]) -> np.dtype:
    """The real dtype to compute in: float64 if any array has it, else float32."""
    bits = [jnp.finfo(x.dtype).bits for x in arrays if is_inexact(x)]
    return jnp.dtype(jnp.float64 if 64 in bits else jnp.float32)
