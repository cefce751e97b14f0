"""Hyperparameters: checked when they are Python numbers, ready for any dtype.

    b1, b2 = fraction("scale_by_adam", b1=b1, b2=b2)

refuses an impossible number by name, and hands the others back as *numbers*: values
that take the dtype of the array they meet. Python numbers are so by nature; an array,
traced or not, is made so, and is not checked, since its value may not be known yet.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Array

from ._known import Known, known, weak
from ._types import Real

Check = Callable[..., list[Any]]


def number(x: Any) -> Any:
    """`x`, made to take the dtype of the arrays it meets, as a Python float does."""
    if isinstance(x, np.generic | np.ndarray):
        return x.item()
    if not isinstance(x, Array):
        return x
    return weak(x)


def decay(x: Any) -> Any:
    """`x` as a `number`, with what is known of it: `1 - x` wants all its digits."""
    return (isinstance(x, Array) and known(x)) or number(x)


def _whole(x: Any) -> Any:
    """`x` as a `number`; a whole float as an int, and none that a count cannot reach.

    Counts are int32 and stop at their largest value: what is longer lasts as long.
    """
    x = number(x)
    if isinstance(x, int | float) and x % 1 == 0:
        return min(int(x), 2**31 - 1)
    return x


def _is_whole(x: int | float) -> bool:
    return x >= 0 and x % 1 == 0


def _check(
    wanted: str, holds: Callable[[float], bool], made: Callable[[Any], Any] = number
) -> Check:
    def check(who: str, **values: Real) -> list[Any]:
        for name, x in values.items():
            if np.ndim(x) > 0:
                raise ValueError(
                    f"{who}: {name} has shape {np.shape(x)}, "
                    f"and one number {wanted} is wanted."
                )
        numbers = [made(x) for x in values.values()]
        for name, x in zip(values, numbers, strict=True):
            if isinstance(x, int | float) and not holds(x):
                raise ValueError(
                    f"{who}: {name} is {x}, and a number {wanted} is wanted."
                )
            if not isinstance(x, int | float | Array | Known):
                raise TypeError(
                    f"{who}: {name} is a {type(x).__name__}, "
                    f"and a number {wanted} is wanted."
                )
        return numbers

    check.__doc__ = f"The values as numbers, each {wanted}."
    return check


loss = _check("that is the loss", lambda x: True)
real = _check("that is not NaN", lambda x: x == x)
fraction = _check("in [0, 1)", lambda x: 0 <= x < 1, decay)
share = _check("in [0, 1]", lambda x: 0 <= x <= 1)
finite = _check("that is finite", lambda x: abs(x) < float("inf"))
nonnegative = _check("of at least 0", lambda x: x >= 0)
positive = _check("above 0", lambda x: x > 0)
negative = _check("below 0", lambda x: x < 0)
measurable = _check("above 0 and below infinity", lambda x: 0 < x < float("inf"))
amount = _check("of at least 0 and below infinity", lambda x: 0 <= x < float("inf"))
inside = _check("above 0 and below 1", lambda x: 0 < x < 1)
whole = _check("that is whole and at least 0", _is_whole, _whole)
period = _check(
    "that is whole and at least 1", lambda x: x >= 1 and _is_whole(x), _whole
)


def unless_array(check: Check, who: str, **values: Any) -> None:
    """`check` those values that are no arrays: one that is may have any shape.

    Args:
        check: one of the checks above.
        who: who speaks in an error.
        values: by name, numbers and arrays.
    """
    for name, x in values.items():
        if not isinstance(x, Array | np.ndarray):
            check(who, **{name: x})
