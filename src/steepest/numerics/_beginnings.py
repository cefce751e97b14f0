"""Where memories begin that are neither means nor mean squares."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Inexact

from ..core import Real, ScalarOrSchedule, Schedule
from ._moments import chosen
from ._precision import wide_dtype

Leaf = Inexact[Array, "..."]


def copy_of(p: Any) -> Any:
    """`p` in an array of its own, so that both can be donated; of a shape, zeros."""
    if isinstance(p, jax.ShapeDtypeStruct):
        return jnp.zeros_like(p)
    return jnp.array(p, dtype=p.dtype, copy=True)


def wide_moment(dtype: Any = None) -> Callable[[Any], Leaf]:
    """Where a sum of gradients begins: zeros like `p`, in float32 or wider.

    So also a mean with decay 0.9999, and one of gradients times a tiny number: in half
    precision the first cannot move and the others vanish. Only a given `dtype` makes
    them narrower.
    """

    def begin(p: Any) -> Leaf:
        real = wide_dtype([p])
        whole = jnp.issubdtype(p.dtype, jnp.complexfloating)
        return jnp.zeros_like(p, dtype=dtype or (p.dtype if whole else real))

    return chosen(dtype, begin)


def scalar(value: Real = 0.0) -> Callable[[], Inexact[Array, ""]]:
    """Where a number kept for the whole tree begins: in float32, or float64 if enabled.

    Args:
        value: the number.
    """
    return lambda: jnp.asarray(value, float)


def scheduled(
    check: Callable[..., list[Any]], who: str, **value: ScalarOrSchedule
) -> Schedule:
    """A function of the count: one that was given, or the constant one of a number.

        rate = scheduled(nonnegative, "prodigy", learning_rate=learning_rate)

    Args:
        check: what the number must be, such as `nonnegative`.
        who: who speaks in an error.
        value: one number or function, by its name.
    """
    ((name, found),) = value.items()
    if callable(found):
        return lambda count: jnp.asarray(found(count), float)
    (constant,) = check(who, **{name: found})
    return lambda count: jnp.asarray(constant)
