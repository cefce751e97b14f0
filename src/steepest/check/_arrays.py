"""Arguments that are arrays, random keys, shapes, dtypes or axes.

    A, b = array("nnls", A=A, b=b)

refuses by name what cannot be one, in the voice of the checks of numbers.
"""

import operator
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array


class WrongArgument(TypeError, ValueError):
    """An array that cannot be one, or one that does not fit the others.

    JAX raises a `TypeError` or a `ValueError`, as the operation happens to be: whoever
    catches either is served.
    """


def said_of(x: Any) -> str:
    """What `x` is, in a clause: its dtype if it has one, else its type."""
    dtype = getattr(x, "dtype", None)
    return f"is a {type(x).__name__}" if dtype is None else f"has dtype {dtype}"


def is_number(x: Any) -> bool:
    """Whether `x` is an array of numbers or a number, perhaps traced or a shape."""
    if isinstance(x, bool | int | float | complex) or hasattr(x, "__jax_array__"):
        return True
    dtype = getattr(x, "dtype", None)
    return dtype is not None and _is_numeric(dtype)


def array(who: str, **given: Any) -> list[Array]:
    """The values as arrays; lists too. A Python number stays weak."""
    found = []
    for name, x in given.items():
        try:
            # A string is also the name of a dtype, and JAX may look it up.
            a = None if isinstance(x, str) else jnp.asarray(x)
        except (TypeError, ValueError):
            a = None
        if a is None or not _is_numeric(a.dtype):
            raise WrongArgument(
                f"{who}: {name} {said_of(x)}, expected an array of numbers."
            )
        found.append(a)
    return found


def one_number(who: str, name: str, x: Any) -> Any:
    """What a function that was given returned, if it can be differentiated.

    Args:
        who: who speaks in an error.
        name: the name of the function.
        x: what it returned.
    """
    if not is_number(x) or np.ndim(x) > 0:
        found = f"shape {np.shape(x)}" if is_number(x) else f"a {type(x).__name__}"
        raise TypeError(
            f"{who}: {name} returns {found}, expected one number. Return the sum or "
            "the mean of a loss."
        )
    return x


def key(who: str, **given: Any) -> None:
    """Refuse what is no key of `jax.random`, of the old kind or the new."""
    for name, k in given.items():
        dtype, shape = getattr(k, "dtype", None), getattr(k, "shape", None)
        new = dtype is not None and jnp.issubdtype(dtype, jax.dtypes.prng_key)
        old = dtype == np.uint32 and len(shape or ()) == 1
        if old or (new and shape == ()):
            continue
        found = f"is an array of the shape {shape}" if new else said_of(k)
        raise WrongArgument(
            f"{who}: {name} {found}, expected one random key. Make it with "
            "`jax.random.key(0)`, and more of it with `jax.random.split`."
        )


def sizes(who: str, **given: Any) -> list[tuple[int, ...]]:
    """The values as shapes: whole numbers of at least 0, in a sequence."""
    found = []
    for name, shape in given.items():
        try:
            sizes = tuple(operator.index(n) for n in shape)
        except TypeError:
            sizes = (-1,)
        if any(n < 0 for n in sizes):
            raise WrongArgument(
                f"{who}: {name} is {shape!r}, expected a sequence of whole numbers of "
                "at least 0, such as (2, 3)."
            )
        found.append(sizes)
    return found


def any_dtype(who: str, **given: Any) -> None:
    """Refuse what is no dtype of numbers; `None` is none, and passes."""
    for name, dtype in given.items():
        try:
            known = dtype is None or _is_numeric(jnp.dtype(dtype))
        except TypeError:
            known = False
        if not known:
            raise TypeError(
                f"{who}: {name} is {dtype!r}, expected a dtype, such as `jnp.float32`."
            )


def axes(name: str, axis: Any, ndim: int) -> tuple[int, ...]:
    """`axis` as positive numbers, in the order given; `None` is all of them.

    Args:
        name: name used in error messages.
        axis: a number, a sequence of them, or `None`.
        ndim: how many axes there are.
    """
    if axis is None:
        return tuple(range(ndim))
    try:
        given = axis if isinstance(axis, Sequence) else (axis,)
        found = [operator.index(a) for a in given]
    except TypeError:
        raise TypeError(
            f"{name}: axis is {axis!r}, expected a whole number, a sequence of them or "
            "None."
        ) from None
    for a in found:
        if not -ndim <= a < ndim:
            fit = f"one from {-ndim} to {ndim - 1}" if ndim else "an array with axes"
            raise ValueError(
                f"{name}: axis is {axis}, and the array has {ndim} dimensions, "
                f"expected {fit}."
            )
    found = [a % ndim for a in found]
    if len(set(found)) < len(found):
        raise ValueError(
            f"{name}: axis {axis} names an axis twice, expected each at most once."
        )
    return tuple(found)


def _is_numeric(dtype: Any) -> bool:
    return jnp.issubdtype(dtype, np.number) or jnp.issubdtype(dtype, np.bool_)
