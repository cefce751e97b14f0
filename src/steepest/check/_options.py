"""Arguments that choose: a function, one of some names, yes or no, a dtype; states.

    flag("scale_by_adam", nesterov=nesterov)

refuses by name what is none of them, in the voice of the checks of numbers.
"""

from collections.abc import Iterable
from typing import Any, TypeVar

import jax.numpy as jnp
import numpy as np

from ..core import unusual

T = TypeVar("T")


def function(who: str, **values: Any) -> list[Any]:
    """The values, each of which can be called."""
    for name, f in values.items():
        if not callable(f):
            raise TypeError(
                f"{who}: {name} is a {type(f).__name__}, expected a function."
            )
    return list(values.values())


def choice(who: str, options: Iterable[str], **values: Any) -> list[Any]:
    """The values, each of which is one of the options."""
    options = list(options)
    for name, x in values.items():
        if not isinstance(x, str) or x not in options:
            raise ValueError(
                f"{who}: {name} is {x!r}, expected one of: {', '.join(options)}."
            )
    return list(values.values())


def flag(who: str, **values: Any) -> list[Any]:
    """The values, each of which is `True` or `False`."""
    for name, x in values.items():
        if not isinstance(x, bool | int | np.bool_) or x not in (False, True):
            raise TypeError(f"{who}: {name} is {x!r}, expected True or False.")
    return list(values.values())


def dtype(who: str, **values: Any) -> list[Any]:
    """The values as they are: each names a dtype that holds fractions, or is `None`."""
    for name, x in values.items():
        try:
            holds = x is None or jnp.issubdtype(jnp.dtype(x), jnp.inexact)
        except TypeError:
            holds = False
        if not holds:
            raise TypeError(
                f"{who}: {name} is {x!r}, expected a dtype of real numbers, such as "
                "`jnp.float32`."
            )
    return list(values.values())


def rate_given(name: str, learning_rate: Any) -> Any:
    """The learning rate; a warning where there is none.

    Without one, updates pass as they are, and point up: a missing line in a
    configuration has done that to many a run.

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
    """The state, if it has the fields of `State`, perhaps of another library.

    Args:
        name: name used in error messages.
        State: a NamedTuple.
        state: what `update` was given.
    """
    fields: tuple[str, ...] = State._fields  # pyright: ignore[reportAttributeAccessIssue]
    if not has_fields(state, fields):
        raise TypeError(
            f"{name}: the state is a {type(state).__name__}, expected a "
            f"{State.__name__}. Make the state with `tx.init` of the params the "
            "updates are for."
        )
    return state


def has_fields(state: Any, names: Iterable[str]) -> bool:
    """Whether a state has these fields; every tuple has a method called `count`."""
    if isinstance(state, tuple):
        return set(names) <= set(getattr(state, "_fields", ()))
    return all(hasattr(state, name) for name in names)
