"""Counts of steps, as schedules read them: exactly, whatever dtype they come in."""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ..core import Schedule
from ..numerics import at_least_float32


def of_count(formula: Callable[[Array], Any]) -> Schedule:
    """The schedule of a formula for an exact count; half precision comes back as such.

    Args:
        formula: what to compute from a count as `exact` makes it.
    """

    def schedule(count: Any) -> Any:
        count = jnp.asarray(_held(count))
        value = formula(at_least_float32(exact(count)))
        return value.astype(count.dtype) if _is_half(count) else value

    return schedule


def exact(count: Any) -> Any:
    """A count that can be subtracted from without wrapping or losing steps.

    Whole ones are at least int32 and signed: an unsigned 3 - 5 is four billion. All
    others stay as they are.
    """
    count = _held(count)
    if isinstance(count, int | float):
        return count
    count = jnp.asarray(count)
    if jnp.issubdtype(count.dtype, jnp.floating):
        return count
    if jnp.issubdtype(count.dtype, jnp.unsignedinteger):
        top = jnp.iinfo(jnp.int32).max
        if count.dtype.itemsize >= 4:  # the narrower ones do not know that number
            count = jnp.minimum(count, top)
        return count.astype(jnp.int32)
    return count if count.dtype.itemsize >= 4 else count.astype(jnp.int32)


def reachable(steps: Any) -> Any:
    """A number of steps that can meet any count: too large a whole one is a float.

    Args:
        steps: a beginning, a length or a boundary.
    """
    return float(steps) if isinstance(steps, int) and steps > _largest() else steps


def among(count: Array, *numbers: Any) -> Array:
    """The count, made to meet these numbers: a float where one of them is not whole.

    Args:
        count: exact, so that whole numbers can be subtracted from it without a loss.
        numbers: beginnings, lengths and boundaries, in steps.
    """
    kinds = (jnp.result_type(x) for x in numbers)
    whole = all(jnp.issubdtype(kind, jnp.integer) for kind in kinds)
    return count if whole else as_float(count)


def as_float(count: Any) -> Any:
    """Counts as floats, float32 or wider, so that they can be divided.

    What would take the dtype of its company, as Python numbers do, still does.
    """
    count = jnp.asarray(count)
    if jnp.issubdtype(count.dtype, jnp.floating):
        return at_least_float32(count)
    return count * 1.0 if count.weak_type else count.astype(float)


def _held(count: Any) -> Any:
    """A count outside JAX, no larger than an integer in JAX can be: there it stops.

    JAX refuses a larger one of Python, and of NumPy it keeps the last 32 bits.
    """
    top = _largest()
    if isinstance(count, int):
        return min(count, top)
    if isinstance(count, np.ndarray | np.generic) and count.dtype.kind in "iu":
        return np.minimum(count, top) if np.iinfo(str(count.dtype)).max > top else count
    return count


def _largest() -> int:
    """The largest integer there is in JAX: of 64 bits, where they are enabled."""
    return int(jnp.iinfo(jnp.result_type(int)).max)


def _is_half(count: Array) -> bool:
    floating = jnp.issubdtype(count.dtype, jnp.floating)
    return floating and count.dtype.itemsize < 4
