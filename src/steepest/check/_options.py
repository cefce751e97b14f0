"""Checks of functions, options, flags, dtypes and states.

    flag("scale_by_adam", nesterov=nesterov)

raises an error that names the argument if it is not `True` or `False`.
"""

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

import jax.numpy as jnp
import numpy as np

from ..core import passed, unusual

T = TypeVar("T")


def function(name: str, /, **values: T) -> list[T]:
    """The values, which must be callable."""
    for argument, f in values.items():
        if not callable(f):
            raise TypeError(
                f"{passed(name, argument, f)} is a {type(f).__name__}, expected a "
                "function."
            )
    return list(values.values())


def choice(name: str, options: Iterable[str], /, **values: T) -> list[T]:
    """The values, which must be among the options."""
    options = list(options)
    for argument, x in values.items():
        if not isinstance(x, str) or x not in options:
            raise ValueError(
                f"{passed(name, argument, x)} is {x!r}, expected one of: "
                f"{', '.join(options)}."
            )
    return list(values.values())


def flag(name: str, /, **values: T) -> list[T]:
    """The values, which must be `True` or `False`."""
    for argument, x in values.items():
        if not isinstance(x, bool | int | np.bool_) or x not in (False, True):
            raise TypeError(
                f"{passed(name, argument, x)} is {x!r}, expected True or False."
            )
    return list(values.values())


def dtype(name: str, /, **values: Any) -> list[Any]:
    """The values, which must be floating or complex dtypes, or `None`."""
    for argument, x in values.items():
        try:
            holds = x is None or jnp.issubdtype(jnp.dtype(x), jnp.inexact)
        except TypeError:
            holds = False
        if not holds:
            raise TypeError(
                f"{passed(name, argument, x)} is {x!r}, expected a dtype of real "
                "numbers, such as `jnp.float32`."
            )
    return list(values.values())


def storage(name: str, names: Sequence[str], /, **values: Any) -> list[Any]:
    """The values, which must be dtypes as for `dtype`, or one of `names`.

    Args:
        name: name used in error messages.
        names: what is allowed besides dtypes.
        values: the values, by the names of the arguments.
    """
    for argument, x in values.items():
        if isinstance(x, str) and x in names:
            continue
        try:
            dtype(name, **{argument: x})
        except TypeError:
            raise TypeError(
                f"{passed(name, argument, x)} is {x!r}, expected a dtype of real "
                f"numbers, such as `jnp.bfloat16`, or one of: {', '.join(names)}."
            ) from None
    return list(values.values())


def rate_given(name: str, learning_rate: T) -> T:
    """The learning rate, with a warning if it is `None`.

    Without a learning rate the updates are not scaled, and point uphill. This happens
    when a line is missing in a configuration.

    Args:
        name: the optimizer, named in the warning.
        learning_rate: a number, a function of the count, or `None`.
    """
    if learning_rate is None:
        unusual(
            f"{name}: learning_rate is None, so the updates are not scaled, and point "
            "uphill. Pass a number or a function of the count. For the direction "
            "alone, use the `scale_by_...` that this optimizer is made of."
        )
    return learning_rate


def state_of(name: str, State: type[T], state: Any) -> T:
    """The state, which must have the fields of `State`; it may be from Optax.

    Args:
        name: name used in error messages.
        State: a NamedTuple.
        state: the state passed to `update`.
    """
    fields: tuple[str, ...] = State._fields  # pyright: ignore[reportAttributeAccessIssue]
    if not has_fields(state, fields):
        raise TypeError(
            f"{name}: the state is a {type(state).__name__}, expected a "
            f"{State.__name__}. Make the state with `tx.init` of the params the "
            "updates are for."
        )
    return state


def has_fields(state: object, names: Iterable[str]) -> bool:
    """Whether a state has these fields. (Every tuple has a method called `count`.)"""
    if isinstance(state, tuple):
        return set(names) <= set(getattr(state, "_fields", ()))
    return all(hasattr(state, name) for name in names)
