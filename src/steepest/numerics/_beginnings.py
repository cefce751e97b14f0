"""Where memories begin that are neither means nor mean squares."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Inexact

from ..core import Real, ScalarOrSchedule
from ._moments import Zeros
from ._precision import wide_dtype

Leaf = Inexact[Array, "..."]


def copy_of(p: Any) -> Any:
    """`p` in an array of its own, so that both can be donated; of a shape, zeros."""
    if isinstance(p, jax.ShapeDtypeStruct):
        return jnp.zeros_like(p)
    return jnp.array(p, dtype=p.dtype, copy=True)


def wide_moment(dtype: Any = None) -> Zeros:
    """Where a sum of gradients begins: zeros like `p`, in float32 or wider.

    So also a mean with decay 0.9999, and one of gradients times a tiny number: in half
    precision the first cannot move and the others vanish. Only a given `dtype` makes
    them narrower.
    """
    return Zeros(_wide_or_complex, dtype)


@dataclass(frozen=True)
class scalar:  # it is called like a function
    """Where a number kept for the whole tree begins: in float32, or float64 if enabled.

    Args:
        value: the number.
    """

    value: Real = 0.0

    def __call__(self) -> Inexact[Array, ""]:
        return jnp.asarray(self.value, float)


def number_or_schedule(
    check: Callable[..., list[Any]], who: str, **value: ScalarOrSchedule
) -> Any:
    """A schedule as it is; a number checked.

        rate = number_or_schedule(finite, "prodigy", learning_rate=learning_rate)

    Args:
        check: what the number must be, such as `nonnegative`.
        who: name used in error messages.
        value: one number or function, by its name.
    """
    ((name, x),) = value.items()
    if callable(x):
        return x
    (number,) = check(who, **{name: x})
    return number


def _wide_or_complex(p: Any) -> Any:
    is_complex = jnp.issubdtype(p.dtype, jnp.complexfloating)
    return p.dtype if is_complex else wide_dtype([p])
