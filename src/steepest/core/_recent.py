"""A cache with a bounded size, safe to use from several threads."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import RLock
from typing import Generic, TypeVar

Made = TypeVar("Made")


class Recent(Generic[Made]):
    """A cache of at most `size` values; the least recently used is dropped first.

    Every cache here is one of these, or an `lru_cache` with a size. Keys come from the
    user, and a search over ten thousand learning rates must not fill the memory.

    Args:
        size: the number of values to keep.

    >>> squares = Recent(2)
    >>> [squares(x, lambda: x * x) for x in (1, 2, 1, 3)]
    [1, 4, 1, 9]
    >>> 1 in squares, 2 in squares
    (True, False)
    """

    def __init__(self, size: int):
        self.size = size
        self._lock = RLock()  # reentrant: comparing keys may run code of the user
        self._kept: OrderedDict[Hashable, Made] = OrderedDict()

    def __call__(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """The value for `key`, computed if it is not in the cache.

        Two threads may compute the same value at once. Both get the first one.

        Args:
            key: what the value depends on. It must be hashable.
            make: computes the value. It runs outside the lock, so it may use the cache.
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

    def __reduce__(self) -> tuple[object, ...]:
        """A copy starts empty: the values can be computed again."""
        return type(self), (self.size,)

    def __contains__(self, key: Hashable) -> bool:
        with self._lock:
            return key in self._kept

    def __len__(self) -> int:
        with self._lock:  # another thread may just have one value too many
            return len(self._kept)

    def values(self) -> list[Made]:
        """The values in the cache, the oldest first."""
        with self._lock:
            return list(self._kept.values())
