"""What every loss asks of its arguments: dtypes, shapes, axes and masks."""

import operator
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool

from .. import check
from ..numerics import promoted

Numbers: TypeAlias = bool | int | float | complex | np.generic | np.ndarray | Array
Axis: TypeAlias = int | np.integer | Sequence[int] | None
Check: TypeAlias = Callable[..., Any]  # one of the checks of numbers of `core`


def array(who: str, name: str, x: Any) -> Array:
    """`x` as an array; a Python number stays weak, so it takes the dtype it meets."""
    if not isinstance(x, Numbers) or not check.is_number(x):
        advice = " Make it one with `jnp.asarray`." if isinstance(x, Sequence) else ""
        raise TypeError(
            f"{who}: {name} {check.said_of(x)}, expected an array of real numbers."
            + ("" if isinstance(x, str) else advice)
        )
    if np.iscomplexobj(x):
        raise TypeError(
            f"{who}: {name} is complex, expected real numbers. Take its real part, its "
            "imaginary part or its modulus."
        )
    return jnp.asarray(x)


def weight(who: str, kind: Check, **given: Any) -> Array:
    """A number, given by name and checked, or an array of them, which is not."""
    ((name, x),) = given.items()
    check.unless_array(kind, who, **given)
    return array(who, name, x)


def floating(
    who: str, name: str, x: Any, advice: str = "Convert it with `.astype(float)`."
) -> Array:
    """`x` as an array of real numbers; integers are refused, not converted."""
    x = array(who, name, x)
    if not jnp.issubdtype(x.dtype, jnp.floating):
        raise TypeError(
            f"{who}: {name} has dtype {x.dtype}, expected a floating dtype. {advice}"
        )
    return x


def integers(who: str, name: str, x: Any, advice: str) -> Array:
    """`x` as an array of integers."""
    x = array(who, name, x)
    if not jnp.issubdtype(x.dtype, jnp.integer):
        raise TypeError(
            f"{who}: {name} has dtype {x.dtype}, expected an integer dtype: the number "
            f"of a class, from 0. {advice}"
        )
    return x


def wide(dtype: Any) -> Any:
    """The dtype to compute in: float32 for half precision, else `dtype` itself."""
    half = jnp.issubdtype(dtype, jnp.floating) and jnp.finfo(dtype).bits < 32
    return jnp.dtype(jnp.float32 if half else dtype)


def same_shape(name: str, **arrays: Array) -> None:
    """Refuse arrays of different shapes: broadcasting would hide a mistake here."""
    if len({x.shape for x in arrays.values()}) > 1:
        raise ValueError(f"{name}: {_shapes(arrays)}, expected equal shapes.")


def meet(name: str, **arrays: Array) -> tuple[Any, list[Array]]:
    """The dtype of the answer; the arrays, of one shape, in the dtype to compute in."""
    dtype = promoted(*arrays.values())
    shape = _common_shape(name, arrays)
    return dtype, [
        jnp.broadcast_to(x.astype(wide(dtype)), shape) for x in arrays.values()
    ]


def spread(who: str, shape: tuple[int, ...], **arrays: Array) -> Any:
    """One array, given by name, broadcast to `shape`."""
    ((name, x),) = arrays.items()
    try:
        return jnp.broadcast_to(x, shape)
    except ValueError:
        raise check.WrongArgument(
            f"{who}: {name} has shape {x.shape}, expected one that broadcasts to "
            f"{shape}."
        ) from None


def mask(name: str, where: Any, shape: tuple[int, ...]) -> Bool[Array, "..."]:
    """`where` as a mask of this shape; `None` keeps everything."""
    if where is None:
        return jnp.ones(shape, bool)
    where = array(name, "where", where)
    if where.dtype != bool:
        raise ValueError(
            f"{name}: where has dtype {where.dtype}, expected booleans. Compare it "
            "with zero first."
        )
    return spread(name, shape, where=where)


def class_mask(
    name: str, where: Any, shape: tuple[int, ...], axis: Axis
) -> Bool[Array, "..."]:
    """`where` as a mask over classes; over examples if it has no axes for classes."""
    if where is not None and np.ndim(where) != len(shape) and axis is not None:
        where = array(name, "where", where)
        given = tuple(axis) if isinstance(axis, Sequence) else (axis,)
        where = jnp.expand_dims(where, tuple(operator.index(a) for a in given))
    return mask(name, where, shape)


def times(weight: Array, x: Array) -> Array:
    """`weight x`, where no weight of an infinite number is nothing: `0 log 0 = 0`."""
    nothing = jnp.isinf(x) & (weight == 0)
    return weight * jnp.where(nothing, 0, x)


def _common_shape(name: str, arrays: dict[str, Array]) -> tuple[int, ...]:
    try:
        return jnp.broadcast_shapes(*(x.shape for x in arrays.values()))
    except ValueError:
        raise check.WrongArgument(
            f"{name}: {_shapes(arrays)}, expected shapes that broadcast."
        ) from None


def _shapes(arrays: dict[str, Array]) -> str:
    return " and ".join(f"{name} has shape {x.shape}" for name, x in arrays.items())
