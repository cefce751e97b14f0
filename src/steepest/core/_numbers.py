"""Hyperparameters: checked when they are Python numbers, ready for any dtype.

    b1, b2 = fraction("scale_by_adam", b1=b1, b2=b2)

refuses an impossible number by name, and hands the others back as *numbers*: values
that take the dtype of the array they meet. Python numbers are so by nature; an array,
traced or not, is made so, and is not checked, since its value may not be known yet.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ._types import Real

Check = Callable[..., list[Any]]


def number(x: Any) -> Any:
    """`x`, made to take the dtype of the arrays it meets, as a Python float does."""
    if isinstance(x, np.generic | np.ndarray):
        return x.item()
    if not isinstance(x, Array):
        return x
    blank = 0 if jnp.issubdtype(x.dtype, jnp.integer) else 0.0
    # The only public way to a weakly typed array: fill one that is weak already.
    return jax.lax.full_like(jnp.asarray(blank), x)


def _check(wanted: str, holds: Callable[[float], bool]) -> Check:
    def check(who: str, **values: Real) -> list[Any]:
        for name, x in values.items():
            if np.ndim(x) > 0:
                raise ValueError(
                    f"{who}: {name} has shape {np.shape(x)}, "
                    f"and one number {wanted} is wanted."
                )
        numbers = [number(x) for x in values.values()]
        for name, x in zip(values, numbers, strict=True):
            if isinstance(x, int | float) and not holds(x):
                raise ValueError(
                    f"{who}: {name} is {x}, and a number {wanted} is wanted."
                )
            if not isinstance(x, int | float | Array):
                raise TypeError(
                    f"{who}: {name} is a {type(x).__name__}, "
                    f"and a number {wanted} is wanted."
                )
        return numbers

    check.__doc__ = f"The values as numbers, each {wanted}."
    return check


real = _check("that is not NaN", lambda x: x == x)
fraction = _check("in [0, 1)", lambda x: 0 <= x < 1)
nonnegative = _check("of at least 0", lambda x: x >= 0)
positive = _check("above 0", lambda x: x > 0)
period = _check("that is whole and at least 1", lambda x: x >= 1 and x % 1 == 0)
