"""How many runs, of how many steps, and when to look at them."""

from dataclasses import dataclass

from ._outcome import Rate

LOOKS = 40  # points of a curve


@dataclass(frozen=True)
class Plan:
    """What every optimizer of a race has to do.

    Attributes:
        rates: the learning rates.
        seeds: the seeds.
        steps: how many steps a run has.
    """

    rates: tuple[Rate, ...]
    seeds: tuple[int, ...]
    steps: int

    @property
    def looks(self) -> tuple[int, ...]:
        """After which steps to look."""
        every = max(1, -(-self.steps // LOOKS))
        return (*range(0, self.steps, every), self.steps)
