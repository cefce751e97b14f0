"""Splits the runs of an optimizer into parts that fit in memory."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class RunPart:
    """Some seeds and some learning rates.

    Attributes:
        seeds: indices of the seeds.
        rates: indices of the learning rates.

    All parts have the same shape, so that one program serves them all. The last ones
    are padded with repeated indices.
    """

    seeds: np.ndarray
    rates: np.ndarray


@dataclass(frozen=True)
class RunParts:
    """All runs, split into parts that run one after another.

    Attributes:
        parts: the parts; a single one if all runs fit in memory.
        devices: number of devices that share the learning rates of a part.
    """

    parts: tuple[RunPart, ...]
    devices: int

    @classmethod
    def of(
        cls, seeds: int, rates: int, most: int, devices: int, group: int | None = None
    ) -> "RunParts":
        """Split the runs, by seeds first: learning rates share the batches of a seed.

        Args:
            seeds: number of seeds.
            rates: number of learning rates.
            most: maximum number of runs in memory at once.
            devices: number of devices; each gets equally many learning rates.
            group: number of learning rates per part, if there is memory for them; by
                default all. The shape of a part depends on it, and not on `rates`.

        >>> [len(RunParts.of(3, 8, most, 2).parts) for most in (24, 16, 8, 7, 2, 1)]
        [1, 2, 3, 6, 12, 24]
        """
        group = rates if group is None else group
        devices = min(devices, group, most)
        full = -(-group // devices) * devices
        if most >= seeds * group:
            many, together = seeds, full
        elif most >= full:
            many, together = _even(seeds, most // full), full
        else:
            most -= most % devices
            many, together = 1, -(-_even(group, most) // devices) * devices
        parts = [
            RunPart(_places(s, many, seeds), _places(r, together, rates))
            for s in range(0, seeds, many)
            for r in range(0, rates, together)
        ]
        return cls(tuple(parts), devices)

    @property
    def at_once(self) -> int:
        """The number of runs in memory at once."""
        return len(self.parts[0].seeds) * len(self.parts[0].rates)


def _even(many: int, most: int) -> int:
    """The size of equal parts of `many`, each at most `most`."""
    parts = -(-many // min(many, most))
    return -(-many // parts)


def _places(begin: int, many: int, end: int) -> np.ndarray:
    return np.minimum(np.arange(begin, begin + many), end - 1)
