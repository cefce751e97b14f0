"""Formulas for real arrays, applied to complex ones."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp


def by_parts(f: Callable[..., tuple[Any, ...]]) -> Callable[..., tuple[Any, ...]]:
    """Apply `f` to real arrays, or to the real and imaginary parts of complex ones.

    Args:
        f: a function of arrays that returns a tuple of arrays.

    >>> square = by_parts(lambda x: (x * x,))
    >>> complex(square(jnp.array(2 + 3j))[0])
    (4+9j)
    """

    def of_parts(*arrays: Any) -> tuple[Any, ...]:
        if not any(map(jnp.iscomplexobj, arrays)):
            return f(*arrays)
        real, imaginary = f(*map(jnp.real, arrays)), f(*map(jnp.imag, arrays))
        return tuple(map(jax.lax.complex, real, imaginary))

    return of_parts
