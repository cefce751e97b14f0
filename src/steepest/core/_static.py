"""Constants of a compiled program, which can be hashed and compared exactly.

In Python, `1 == 1.0 == True` and `0.0 == -0.0`. A program compiled for one of them is
not the right program for the others.
"""

from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np

_PLAIN = (bool, int, float, complex, str, bytes, type(None))


class Static:
    """Values that are equal only if they are of the same type and exactly the same.

    Args:
        values: numbers, strings, functions, NumPy arrays, or other objects. An object
            that cannot be hashed and compared is equal only to itself.
    """

    __slots__ = ("_hash", "_keys", "values")

    def __init__(self, values: Iterable[object]):
        self.values: tuple[Any, ...] = tuple(values)
        self._keys = tuple(map(_key, self.values))
        self._hash = hash(self._keys)

    def __eq__(self, other: object) -> bool:
        if self is other or not isinstance(other, Static):
            return self is other
        return self._hash == other._hash and self._keys == other._keys

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"Static{self.values!r}"

    def __reduce__(self) -> tuple[object, ...]:
        return Static, (self.values,)


def _key(x: object) -> Hashable:
    """A key for a value: equal keys mean equal programs."""
    if isinstance(x, _PLAIN):
        return type(x), repr(x)  # `repr` tells -0.0 from 0.0, and all NaNs are one
    if isinstance(x, tuple):
        return type(x), tuple(map(_key, x))
    if isinstance(x, np.ndarray | np.generic):
        return type(x), x.dtype, x.shape, x.tobytes()
    try:
        hash(x)
        if (x == x) is True:
            return x
    except Exception:  # a user's class may raise anything
        pass
    return _Itself(x)


class _Itself:
    """An object, equal only to itself, and kept alive."""

    def __init__(self, thing: object):
        self.thing = thing

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Itself) and self.thing is other.thing

    def __hash__(self) -> int:
        return id(self.thing)
