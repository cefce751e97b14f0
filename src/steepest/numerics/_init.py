"""Initial values of memories that are neither means nor mean squares."""

from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import Array, Inexact

from ..core import Param, Real, ScalarOrSchedule
from ._moments import Zeros
from ._precision import wide_dtype

Leaf = Inexact[Array, "..."]


def copy_of(p: Param | Real) -> Array:
    """A copy of `p`, so that both can be donated; zeros for a `ShapeDtypeStruct`."""
    if isinstance(p, jax.ShapeDtypeStruct):
        return jnp.zeros_like(p)
    return jnp.array(p, dtype=jnp.result_type(p), copy=True)


def wide_moment(dtype: DTypeLike | None = None) -> Zeros:
    """The initial value of a sum of gradients: zeros like `p`, in float32 or wider.

    Also for a mean with decay 0.9999, which cannot move in half precision, and for a
    mean of gradients times a tiny number, which underflows there. Only an explicit
    `dtype` makes it narrower.
    """
    return Zeros(_wide_or_complex, dtype)


@dataclass(frozen=True)
class scalar:  # it is called like a function
    """The initial value of a scalar memory, in float32, or float64 if enabled.

    Args:
        value: the number.
    """

    value: Real = 0.0

    def __call__(self) -> Inexact[Array, ""]:
        return jnp.asarray(self.value, float)


def number_or_schedule(
    check: Callable[..., list[Real]], name: str, **value: ScalarOrSchedule
) -> ScalarOrSchedule:
    """The value: a number is checked, a schedule is returned unchanged.

        rate = number_or_schedule(finite, "prodigy", learning_rate=learning_rate)

    Args:
        check: a check of numbers, such as `nonnegative`.
        name: name used in error messages.
        value: one number or schedule, as a keyword argument.
    """
    ((argument, x),) = value.items()
    if callable(x):
        return x
    (number,) = check(name, **{argument: x})
    return number


def _wide_or_complex(p: Param) -> np.dtype:
    is_complex = jnp.issubdtype(p.dtype, jnp.complexfloating)
    return p.dtype if is_complex else wide_dtype([p])
