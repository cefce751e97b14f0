"""Checks of single values, shared by `race`'s arguments and a `Problem`'s fields."""

from math import isfinite
from numbers import Integral, Real
from typing import TypeGuard

COUNT = "a whole number above 0"
NUMBER = "a number"
POSITIVE = "a number above 0"


def is_count(x: object) -> TypeGuard[Integral]:
    """Whether it is a whole number above 0.

    Args:
        x: any value.
    """
    return isinstance(x, Integral) and not isinstance(x, bool) and int(x) > 0


def is_number(x: object) -> TypeGuard[Real]:
    """Whether it is a finite real number.

    Args:
        x: any value.
    """
    return isinstance(x, Real) and not isinstance(x, bool) and isfinite(x)


def is_positive(x: object) -> TypeGuard[Real]:
    """Whether it is a finite number above 0.

    Args:
        x: any value.
    """
    return is_number(x) and float(x) > 0
