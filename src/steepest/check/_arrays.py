"""Arguments that are arrays, random keys, shapes, dtypes or axes.

    A, b = array("nnls", A=A, b=b)

raises an error that names the argument if it is not one.
"""

import operator
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ..core import passed


class WrongArgument(TypeError, ValueError):
    """An argument that is not an array, or does not fit the others.

    JAX raises a `TypeError` or a `ValueError`, depending on the operation. Both
    `except` clauses catch this error.
    """


def kind(x: object) -> str:
    """A clause for an error message: the dtype of `x`, or its type."""
    dtype = getattr(x, "dtype", None)
    return f"is a {type(x).__name__}" if dtype is None else f"has dtype {dtype}"


def is_number(x: object) -> bool:
    """Whether `x` is a number or an array of numbers; tracers and shapes count."""
    if isinstance(x, bool | int | float | complex) or hasattr(x, "__jax_array__"):
        return True
    dtype = getattr(x, "dtype", None)
    return dtype is not None and _is_numeric(dtype)


def array(name: str, /, **given: object) -> list[Array]:
    """The values as arrays. Python numbers stay weakly typed."""
    arrays = []
    for argument, x in given.items():
        try:
            # A string may be the name of a dtype, which JAX would look up.
            a = None if isinstance(x, str) else jnp.asarray(x)
        except (TypeError, ValueError):
            a = None
        if a is None or not _is_numeric(a.dtype):
            raise WrongArgument(
                f"{passed(name, argument, x)} {kind(x)}, expected an array of numbers."
            )
        arrays.append(a)
    return arrays


def one_number(name: str, argument: str, x: Any) -> Any:
    """The result of a user's function, which must be one number.

    Args:
        name: name used in error messages.
        argument: the name of the function.
        x: its result.
    """
    if not is_number(x) or np.ndim(x) > 0:
        text = f"shape {np.shape(x)}" if is_number(x) else f"a {type(x).__name__}"
        raise TypeError(
            f"{name}: {argument} returns {text}, expected one number. Return the sum "
            "or the mean of a loss."
        )
    return x


def key(name: str, /, **given: object) -> None:
    """Check for a key of `jax.random`, old-style or new-style."""
    for argument, k in given.items():
        dtype, shape = getattr(k, "dtype", None), getattr(k, "shape", None)
        new = dtype is not None and jnp.issubdtype(dtype, jax.dtypes.prng_key)
        old = dtype == np.uint32 and len(shape or ()) == 1
        if old or (new and shape == ()):
            continue
        text = f"is an array of the shape {shape}" if new else kind(k)
        raise WrongArgument(
            f"{passed(name, argument, k)} {text}, expected one random key. Make it "
            "with `jax.random.key(0)`, and more of it with `jax.random.split`."
        )


def sizes(name: str, /, **given: Any) -> list[tuple[int, ...]]:
    """The values as shapes: sequences of whole numbers of at least 0."""
    shapes = []
    for argument, shape in given.items():
        try:
            sizes = tuple(operator.index(n) for n in shape)
        except TypeError:
            sizes = (-1,)
        if any(n < 0 for n in sizes):
            raise WrongArgument(
                f"{passed(name, argument, shape)} is {shape!r}, expected a sequence "
                "of whole numbers of at least 0, such as (2, 3)."
            )
        shapes.append(sizes)
    return shapes


def any_dtype(name: str, /, **given: Any) -> None:
    """Check for a numeric dtype, or `None`."""
    for argument, dtype in given.items():
        try:
            known = dtype is None or _is_numeric(jnp.dtype(dtype))
        except TypeError:
            known = False
        if not known:
            raise TypeError(
                f"{passed(name, argument, dtype)} is {dtype!r}, expected a dtype, "
                "such as `jnp.float32`."
            )


def axes(name: str, axis: Any, ndim: int) -> tuple[int, ...]:
    """`axis` as nonnegative numbers, in the same order; `None` means all axes.

    Args:
        name: name used in error messages.
        axis: a number, a sequence of them, or `None`.
        ndim: the number of axes of the array.
    """
    if axis is None:
        return tuple(range(ndim))
    try:
        given = axis if isinstance(axis, Sequence) else (axis,)
        indices = [operator.index(a) for a in given]
    except TypeError:
        raise TypeError(
            f"{name}: axis is {axis!r}, expected a whole number, a sequence of them or "
            "None."
        ) from None
    for a in indices:
        if not -ndim <= a < ndim:
            fit = f"one from {-ndim} to {ndim - 1}" if ndim else "an array with axes"
            raise ValueError(
                f"{name}: axis is {axis}, and the array has {ndim} dimensions, "
                f"expected {fit}."
            )
    indices = [a % ndim for a in indices]
    if len(set(indices)) < len(indices):
        raise ValueError(
            f"{name}: axis {axis} names an axis twice, expected each at most once."
        )
    return tuple(indices)


def _is_numeric(dtype: Any) -> bool:
    return jnp.issubdtype(dtype, np.number) or jnp.issubdtype(dtype, np.bool_)
