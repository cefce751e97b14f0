"""The runs of an optimizer, and when they are evaluated."""

from dataclasses import dataclass

from ._outcome import Rate

EVALUATIONS = 40  # per run: the points of a curve


@dataclass(frozen=True)
class RunPlan:
    """The runs of one optimizer.

    Attributes:
        rates: the learning rates.
        seeds: the seeds.
        steps: number of steps per run.
        halving: whether hopeless learning rates are stopped early.
    """

    rates: tuple[Rate, ...]
    seeds: tuple[int, ...]
    steps: int
    halving: bool = False

    @property
    def evaluation_steps(self) -> tuple[int, ...]:
        """The steps after which the runs are evaluated."""
        every = max(1, -(-self.steps // EVALUATIONS))
        return (*range(0, self.steps, every), self.steps)
