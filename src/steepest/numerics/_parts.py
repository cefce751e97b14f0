"""Formulas for real arrays, applied to complex ones."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array


def by_parts(f: Callable[..., tuple[Array, ...]]) -> Callable[..., tuple[Array, ...]]:
    """Apply `f` to real arrays, or to the real and imaginary parts of complex ones.

    Args:
        f: a function of arrays that returns a tuple of arrays.

    >>> import jax.numpy as jnp
    >>> square = by_parts(lambda x: (x * x,))
    >>> complex(square(jnp.array(2 + 3j))[0])
    (4+9j)
    """

    def of_parts(*arrays: Array) -> tuple[Array, ...]:
        if not any(map(jnp.iscomplexobj, arrays)):
            return f(*arrays)
        real, imaginary = f(*map(jnp.real, arrays)), f(*map(jnp.imag, arrays))
        return tuple(map(jax.lax.complex, real, imaginary))

    return of_parts
