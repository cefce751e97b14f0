"""Checks of hyperparameters.

    b1, b2 = fraction("scale_by_adam", b1=b1, b2=b2)

raises an error for an impossible number, warns about an unlikely one, and returns
weakly typed values, which take the dtype of the arrays they meet. Python numbers
already are. An array is made weakly typed, and its value is not checked, since it may
be traced.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ..core import passed, unusual


def number(x: object) -> Any:
    """`x` as a weakly typed number, as Python floats are."""
    if isinstance(x, np.generic | np.ndarray):
        return x.item()
    if not isinstance(x, Array):
        return x
    return x if x.weak_type else weak(x)


def weak(x: Array) -> Array:
    """`x`, weakly typed: it takes the dtype of the arrays it meets."""
    blank = 0 if jnp.issubdtype(x.dtype, jnp.integer) else 0.0
    # The only public way to make a weakly typed array.
    return jax.lax.full_like(jnp.asarray(blank), x)


def _whole(x: object) -> Any:
    """`x` as a `number`; a whole float becomes an int, at most the largest int32.

    Counts are int32 and stop at their largest value, so larger periods never end.
    """
    x = number(x)
    if isinstance(x, int | float) and x % 1 == 0:
        return min(int(x), 2**31 - 1)
    return x


def _is_whole(x: int | float) -> bool:
    return x >= 0 and x % 1 == 0


@dataclass(frozen=True)
class Check:
    """A check of numbers, passed by name.

    An impossible value is an error. A value that works but is probably a mistake is
    used, as in Optax, with an `UnusualValueWarning`.
    """

    wanted: str  # follows "a number" in messages
    usual: Callable[[float], bool]  # whether a value passes without a warning
    possible: Callable[[float], bool]  # whether a value can be used at all
    made: Callable[[object], Any] = number  # converts a value

    def __call__(self, name: str, /, **values: object) -> list[Any]:
        """The values as numbers, with a warning for unusual ones.

        Args:
            name: name used in messages.
            values: numbers by name.
        """
        return self._checked(name, values, self.possible)

    def must(self, name: str, /, **values: object) -> list[Any]:
        """The values as numbers, with an error for unusual ones.

        Args:
            name: name used in messages.
            values: numbers by name.
        """
        return self._checked(name, values, self.usual)

    def _checked(
        self, name: str, values: Mapping[str, Any], holds: Callable[[float], bool]
    ) -> list[Any]:
        for argument, x in values.items():
            if np.ndim(x) > 0:
                raise ValueError(
                    f"{passed(name, argument, x)} has shape {np.shape(x)}, expected "
                    f"one number {self.wanted}."
                )
        numbers = [self.made(x) for x in values.values()]
        for (argument, value), x in zip(values.items(), numbers, strict=True):
            if isinstance(x, int | float):
                if not holds(x):
                    raise ValueError(
                        f"{passed(name, argument, value)} is {x}, expected a number "
                        f"{self.wanted}."
                    )
                if not self.usual(x):
                    unusual(
                        f"{passed(name, argument, value)} is {x}, but is usually a "
                        f"number {self.wanted}. The value is used."
                    )
            elif not isinstance(x, Array):
                raise TypeError(
                    f"{passed(name, argument, value)} is a {type(x).__name__}, "
                    f"expected a number {self.wanted}."
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
# A period of 0 or of 1.5 steps has no meaning.
whole = Check("that is whole and at least 0", _is_whole, _is_whole, _whole)
period = Check("that is whole and at least 1", _at_least_one, _at_least_one, _whole)


def unless_array(check: Callable[..., object], name: str, **values: object) -> None:
    """Apply `check` to the values that are not arrays. Arrays may have any shape.

    Args:
        check: one of the checks above.
        name: name used in error messages.
        values: by argument, numbers and arrays.
    """
    for argument, x in values.items():
        if not isinstance(x, Array | np.ndarray):
            check(name, **{argument: x})
