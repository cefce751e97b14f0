"""Checks and conversions of loss arguments: dtypes, shapes, axes and masks."""

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
Check: TypeAlias = Callable[..., list[Any]]  # one of the checks of numbers in `check`


def array(name: str, argument: str, x: object) -> Array:
    """`x` as an array; a Python number stays weakly typed."""
    if not isinstance(x, Numbers) or not check.is_number(x):
        advice = " Convert it with `jnp.asarray`." if isinstance(x, Sequence) else ""
        raise TypeError(
            f"{name}: {argument} {check.kind(x)}, expected an array of real numbers."
            + ("" if isinstance(x, str) else advice)
        )
    if np.iscomplexobj(x):
        raise TypeError(
            f"{name}: {argument} is complex, expected real numbers. Take its real "
            "part, imaginary part or absolute value."
        )
    return jnp.asarray(x)


def weight(name: str, kind: Check, **value: object) -> Array:
    """One keyword argument as an array; a number is checked, an array is not."""
    ((argument, x),) = value.items()
    check.unless_array(kind, name, **value)
    return array(name, argument, x)


def floating(
    name: str,
    argument: str,
    x: object,
    advice: str = "Convert it with `.astype(float)`.",
) -> Array:
    """`x` as an array of floats; integers are rejected, not converted."""
    x = array(name, argument, x)
    if not jnp.issubdtype(x.dtype, jnp.floating):
        raise TypeError(
            f"{name}: {argument} has dtype {x.dtype}, expected a floating dtype. "
            f"{advice}"
        )
    return x


def integers(name: str, argument: str, x: object, advice: str) -> Array:
    """`x` as an array of integers."""
    x = array(name, argument, x)
    if not jnp.issubdtype(x.dtype, jnp.integer):
        raise TypeError(
            f"{name}: {argument} has dtype {x.dtype}, expected an integer dtype: class "
            f"indices, from 0. {advice}"
        )
    return x


def not_swapped(name: str, **arrays: object) -> None:
    """Reject class indices in place of scores, and scores in place of labels.

    Args:
        name: name used in error messages.
        arrays: two arguments of the loss, in order: the scores and the labels.
    """
    kinds = [_dtype(x) for x in arrays.values()]
    wrong = jnp.integer, jnp.floating
    if all(k and jnp.issubdtype(k, w) for k, w in zip(kinds, wrong, strict=True)):
        first, second = arrays
        raise check.WrongArgument(
            f"{name}: {first} has dtype {kinds[0]} and {second} has dtype {kinds[1]}, "
            f"as if they were swapped. Call `{name}({first}, {second})`, with {first} "
            "of a floating dtype."
        )


def _dtype(x: object) -> np.dtype | None:
    return jnp.result_type(x) if isinstance(x, Numbers) and check.is_number(x) else None


def wide(dtype: np.dtype) -> np.dtype:
    """The dtype to compute in: float32 for half precision, else `dtype` itself."""
    half = jnp.issubdtype(dtype, jnp.floating) and jnp.finfo(dtype).bits < 32
    return jnp.dtype(jnp.float32 if half else dtype)


def same_shape(name: str, **arrays: Array) -> None:
    """Reject arrays of different shapes: broadcasting would hide a mistake here."""
    if len({x.shape for x in arrays.values()}) > 1:
        raise ValueError(f"{name}: {_shapes(arrays)}, expected equal shapes.")


def meet(name: str, **arrays: Array) -> tuple[np.dtype, list[Array]]:
    """The result dtype, and the arrays broadcast and cast to the compute dtype."""
    dtype = promoted(*arrays.values())
    shape = _common_shape(name, arrays)
    return dtype, [
        jnp.broadcast_to(x.astype(wide(dtype)), shape) for x in arrays.values()
    ]


def spread(name: str, shape: tuple[int, ...], **arrays: Array) -> Array:
    """One keyword argument, broadcast to `shape`."""
    ((argument, x),) = arrays.items()
    try:
        return jnp.broadcast_to(x, shape)
    except ValueError:
        raise check.WrongArgument(
            f"{name}: {argument} has shape {x.shape}, expected one that broadcasts to "
            f"{shape}."
        ) from None


def mask(name: str, where: object, shape: tuple[int, ...]) -> Bool[Array, "..."]:
    """`where` as a mask of this shape; `None` keeps everything."""
    if where is None:
        return jnp.ones(shape, bool)
    where = array(name, "where", where)
    if where.dtype != bool:
        raise ValueError(
            f"{name}: where has dtype {where.dtype}, expected booleans. Pass "
            "`where != 0`."
        )
    return spread(name, shape, where=where)


def class_mask(
    name: str, where: Numbers | None, shape: tuple[int, ...], axis: Axis
) -> Bool[Array, "..."]:
    """`where` as a mask over classes, or over examples if it lacks the class axes."""
    if where is not None and np.ndim(where) != len(shape) and axis is not None:
        where = array(name, "where", where)
        axes = tuple(axis) if isinstance(axis, Sequence) else (axis,)
        where = jnp.expand_dims(where, tuple(operator.index(a) for a in axes))
    return mask(name, where, shape)


def times(weight: Array, x: Array) -> Array:
    """`weight x`, where zero times infinity is zero: `0 log 0 = 0`."""
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
