"""A memory of what was made lately: bounded, and safe between threads."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import RLock
from typing import Any, Generic, TypeVar

Made = TypeVar("Made")


class Recent(Generic[Made]):
    """At most `size` values by key; the one used longest ago goes first.

    Every memory that outlives a call is one of these, or an `lru_cache` with a size,
    since keys come from the user: a search over ten thousand learning rates must not
    fill the machine.

    Args:
        size: how many values are kept.

    >>> squares = Recent(2)
    >>> [squares(x, lambda: x * x) for x in (1, 2, 1, 3)]
    [1, 4, 1, 9]
    >>> 1 in squares, 2 in squares
    (True, False)
    """

    def __init__(self, size: int):
        self.size = size
        self._lock = RLock()  # again: to compare keys may run code of the user
        self._kept: OrderedDict[Hashable, Made] = OrderedDict()

    def __call__(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """The value for `key`, made if it is not known.

        Two threads that ask at once may both make it, and both get the first.

        Args:
            key: what the value depends on. If it cannot be hashed or compared, that
                error is raised.
            make: makes the value. It runs outside the lock, so it may ask again.
        """
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        made = make()
        with self._lock:
            made = self._kept.setdefault(key, made)
            self._kept.move_to_end(key)
            while len(self._kept) > self.size:
                self._kept.popitem(last=False)
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy begins empty: what is kept can be made again, and a lock is alone."""
        return type(self), (self.size,)

    def __contains__(self, key: Hashable) -> bool:
        with self._lock:
            return key in self._kept

    def __len__(self) -> int:
        return len(self._kept)

    def values(self) -> list[Made]:
        """What is kept, the oldest first."""
        with self._lock:
            return list(self._kept.values())
