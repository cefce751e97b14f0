"""Step counts of any dtype, converted for schedules without losing precision."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array

from ..core import Real, Schedule
from ..numerics import at_least_float32


def of_count(formula: Callable[[Array], Array]) -> Schedule:
    """A schedule that passes an exact count to a formula.

    If the count is in half precision, so is the result.

    Args:
        formula: a function of the count that `exact` returns.
    """

    def schedule(count: ArrayLike) -> Array:
        count = jnp.asarray(_clamped(count))
        value = formula(at_least_float32(exact(count)))
        return value.astype(count.dtype) if _is_half(count) else value

    return schedule


def exact(count: ArrayLike) -> int | float | Array:
    """A count that can be subtracted from without wrapping or losing steps.

    Integers become signed and at least int32: an unsigned 3 - 5 is four billion.
    Floats and Python numbers are unchanged.
    """
    count = _clamped(count)
    if isinstance(count, int | float):
        return count
    count = jnp.asarray(count)
    if jnp.issubdtype(count.dtype, jnp.floating):
        return count
    if jnp.issubdtype(count.dtype, jnp.unsignedinteger):
        top = jnp.iinfo(jnp.int32).max
        if count.dtype.itemsize >= 4:  # narrower dtypes cannot represent `top`
            count = jnp.minimum(count, top)
        return count.astype(jnp.int32)
    return count if count.dtype.itemsize >= 4 else count.astype(jnp.int32)


def reachable(steps: Real) -> Real:
    """A number of steps that can be compared with any count.

    An integer too large for JAX becomes a float.

    Args:
        steps: a first step, a number of steps or a boundary.
    """
    return float(steps) if isinstance(steps, int) and steps > _largest() else steps


def among(count: Array, *numbers: Real) -> Array:
    """The count, as a float if one of the numbers is not an integer.

    Args:
        count: an exact count, so that integers can be subtracted from it without error.
        numbers: first steps, numbers of steps and boundaries.
    """
    kinds = (jnp.result_type(x) for x in numbers)
    whole = all(jnp.issubdtype(kind, jnp.integer) for kind in kinds)
    return count if whole else as_float(count)


def as_float(count: ArrayLike) -> Array:
    """Counts as floats, float32 or wider, so that they can be divided.

    Integers become weakly typed, as Python floats are. So schedules return float64 if
    x64 is enabled, but do not promote float32 params.
    """
    count = jnp.asarray(count)
    if jnp.issubdtype(count.dtype, jnp.floating):
        return at_least_float32(count)
    with jax.numpy_dtype_promotion("standard"):
        return count * 1.0


def _clamped(count: ArrayLike) -> ArrayLike:
    """A Python or NumPy count, clamped to the largest integer of JAX.

    JAX rejects larger Python integers, and keeps only 32 bits of NumPy's.
    """
    top = _largest()
    if isinstance(count, int):
        return min(count, top)
    if isinstance(count, np.ndarray | np.generic) and count.dtype.kind in "iu":
        return np.minimum(count, top) if np.iinfo(str(count.dtype)).max > top else count
    return count


def _largest() -> int:
    """The largest integer of JAX: 32 bits, or 64 bits if x64 is enabled."""
    return int(jnp.iinfo(jnp.result_type(int)).max)


def _is_half(count: Array) -> bool:
    floating = jnp.issubdtype(count.dtype, jnp.floating)
    return floating and count.dtype.itemsize < 4
