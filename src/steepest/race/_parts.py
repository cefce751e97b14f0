"""Which runs are in memory at once."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Part:
    """Some seeds at some learning rates.

    Attributes:
        seeds: the places of the seeds.
        rates: the places of the learning rates.

    All parts of a race have as many of both, so that one program serves them: the last
    ones are filled up with places that occurred before.
    """

    seeds: np.ndarray
    rates: np.ndarray


@dataclass(frozen=True)
class Parts:
    """All runs, divided so that at most so many are in memory at once.

    Attributes:
        parts: which runs are together; one if all are.
        devices: on how many devices the learning rates of a part are.
    """

    parts: tuple[Part, ...]
    devices: int

    @classmethod
    def of(cls, seeds: int, rates: int, most: int, devices: int) -> "Parts":
        """Divide seeds first: learning rates of one seed share its batches.

        Args:
            seeds: how many there are.
            rates: the same.
            most: how many runs may be in memory at once.
            devices: how many there are; each gets as many learning rates.

        >>> [len(Parts.of(3, 8, most, 2).parts) for most in (24, 16, 8, 7, 2, 1)]
        [1, 2, 3, 6, 12, 24]
        """
        devices = min(devices, rates, most)
        full = -(-rates // devices) * devices
        if most >= seeds * rates:
            many, together = seeds, full
        elif most >= full:
            many, together = _even(seeds, most // full), full
        else:
            most -= most % devices
            many, together = 1, -(-_even(rates, most) // devices) * devices
        parts = [
            Part(_places(s, many, seeds), _places(r, together, rates))
            for s in range(0, seeds, many)
            for r in range(0, rates, together)
        ]
        return cls(tuple(parts), devices)

    @property
    def at_once(self) -> int:
        """How many runs are in memory at once."""
        return len(self.parts[0].seeds) * len(self.parts[0].rates)


def _even(many: int, most: int) -> int:
    """At most so many of them at once, so that the last part is not much smaller."""
    parts = -(-many // min(many, most))
    return -(-many // parts)


def _places(begin: int, many: int, end: int) -> np.ndarray:
    return np.minimum(np.arange(begin, begin + many), end - 1)
