"""Hyperparameters: checked when they are Python numbers, ready for any dtype.

    b1, b2 = fraction("scale_by_adam", b1=b1, b2=b2)

refuses an impossible number by name, warns of an unlikely one, and hands them back as
*numbers*: values that take the dtype of the array they meet. Python numbers are so by
nature; an array, traced or not, is made so, and is not checked, since its value may not
be known yet.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ..core import unusual


def number(x: Any) -> Any:
    """`x`, made to take the dtype of the arrays it meets, as a Python float does."""
    if isinstance(x, np.generic | np.ndarray):
        return x.item()
    if not isinstance(x, Array):
        return x
    return x if x.weak_type else weak(x)


def weak(x: Array) -> Array:
    """`x`, made to take the dtype of the arrays it meets, as a Python number does."""
    blank = 0 if jnp.issubdtype(x.dtype, jnp.integer) else 0.0
    # The only public way to a weakly typed array: fill one that is weak already.
    return jax.lax.full_like(jnp.asarray(blank), x)


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


@dataclass(frozen=True)
class Check:
    """A check of numbers, each given by its name.

    What cannot be computed is refused. What can, though it is hardly ever meant, is
    computed all the same, as in Optax, with an `UnusualValueWarning`.
    """

    wanted: str  # to be read after "a number"
    usual: Callable[[float], bool]  # whether a number needs no warning
    possible: Callable[[float], bool]  # whether it can be computed with
    made: Callable[[Any], Any] = number  # what becomes of a value

    def __call__(self, name: str, **values: Any) -> list[Any]:
        """The values as numbers; a warning for those that are not usual.

        Args:
            name: name used in messages.
            values: by name.
        """
        return self._checked(name, values, self.possible)

    def must(self, name: str, **values: Any) -> list[Any]:
        """The values as numbers; an error for those that are not usual.

        Args:
            name: name used in messages.
            values: by name.
        """
        return self._checked(name, values, self.usual)

    def _checked(
        self, who: str, values: Mapping[str, Any], holds: Callable[[float], bool]
    ) -> list[Any]:
        for name, x in values.items():
            if np.ndim(x) > 0:
                raise ValueError(
                    f"{who}: {name} has shape {np.shape(x)}, expected one number "
                    f"{self.wanted}."
                )
        numbers = [self.made(x) for x in values.values()]
        for name, x in zip(values, numbers, strict=True):
            if isinstance(x, int | float):
                if not holds(x):
                    raise ValueError(
                        f"{who}: {name} is {x}, expected a number {self.wanted}."
                    )
                if not self.usual(x):
                    unusual(
                        f"{who}: {name} is {x}, and usually a number {self.wanted}. It "
                        "is used as it is."
                    )
            elif not isinstance(x, Array):
                raise TypeError(
                    f"{who}: {name} is a {type(x).__name__}, expected a number "
                    f"{self.wanted}."
                )
        return numbers


_anything = lambda x: True
_known = lambda x: x == x
_bounded = lambda x: x > -float("inf")  # and not NaN
_finite = lambda x: abs(x) < float("inf")
_at_least_one = lambda x: x >= 1 and _is_whole(x)

loss = Check("that is the loss", _anything, _anything)
real = Check("that is not NaN", _known, _known)
finite = Check("that is finite", _finite, _finite)
fraction = Check("in [0, 1]", lambda x: 0 <= x <= 1, _finite)
inside = Check("above 0 and below 1", lambda x: 0 < x < 1, _finite)
nonnegative = Check("of at least 0", lambda x: x >= 0, _bounded)
positive = Check("above 0", lambda x: x > 0, _bounded)
negative = Check("below 0", lambda x: x < 0, _known)
measurable = Check(
    "above 0 and below infinity", lambda x: 0 < x < float("inf"), _bounded
)
amount = Check(
    "of at least 0 and below infinity", lambda x: 0 <= x < float("inf"), _bounded
)
# Every 0 steps, or every 1.5, is nothing that could be computed.
whole = Check("that is whole and at least 0", _is_whole, _is_whole, _whole)
period = Check("that is whole and at least 1", _at_least_one, _at_least_one, _whole)


def unless_array(check: Callable[..., list[Any]], who: str, **values: Any) -> None:
    """`check` those values that are no arrays: one that is may have any shape.

    Args:
        check: one of the checks above.
        who: who speaks in an error.
        values: by name, numbers and arrays.
    """
    for name, x in values.items():
        if not isinstance(x, Array | np.ndarray):
            check(who, **{name: x})
