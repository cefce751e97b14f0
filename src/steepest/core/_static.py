"""Values that are constants of a compiled program: compared exactly, and hashed.

For Python `1 == 1.0 == True` and `0.0 == -0.0`. A program that was compiled for one of
these is not the program for another.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np

_PLAIN = (bool, int, float, complex, str, bytes, type(None))


class Static:
    """Some values that are equal to others only if nothing tells them apart.

    Args:
        values: numbers, strings, functions, NumPy arrays, or anything else. What cannot
            be hashed and compared is equal to itself alone.
    """

    __slots__ = ("_hash", "_keys", "values")

    def __init__(self, values: Iterable[Any]):
        self.values = tuple(values)
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

    def __reduce__(self) -> tuple[Any, ...]:
        return Static, (self.values,)


def _key(x: Any) -> Any:
    """What stands for a value: equal keys, equal programs."""
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
    except Exception:  # a class of the user's may raise anything
        pass
    return _Itself(x)


class _Itself:
    """A thing, equal to itself alone, which it keeps alive."""

    def __init__(self, thing: Any):
        self.thing = thing

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Itself) and self.thing is other.thing

    def __hash__(self) -> int:
        return id(self.thing)
