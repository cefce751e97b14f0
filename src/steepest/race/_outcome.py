"""What a race has found: numbers, and nothing of how they came about."""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

Better = Literal["lower", "higher"]
Rate = float | None  # `None` for an optimizer that has no learning rate


@dataclass(frozen=True, eq=False)
class Sweep:
    """All runs of one optimizer: every learning rate, from every seed.

    A run is looked at before the first step, and after every so many: `looks` times.

    Attributes:
        name: the optimizer, as it was asked for: `lookahead(adamw)`.
        rates: the learning rates; `(None,)` for an optimizer that has none.
        seeds: the seeds.
        steps: at which steps it was looked at; the first one is 0.
        loss: (rates, seeds, looks), the mean over the steps since the look before; at
            first that of the first step. NaN from where a run diverged.
        metric: (rates, seeds, looks), that of the problem.
        seconds: (looks,) what all these runs together had taken, without compiling.
        compiling: the seconds until the first step could begin.
        bytes_per_param: of the optimizer's state.
        parameters: how many the model has.
        planned: how many steps a run was to have; more than `steps[-1]` if time was up.
        at_once: how many runs were in memory at once; `None` if all were.
    """

    name: str
    rates: tuple[Rate, ...]
    seeds: tuple[int, ...]
    steps: tuple[int, ...]
    loss: np.ndarray
    metric: np.ndarray
    seconds: tuple[float, ...]
    compiling: float
    bytes_per_param: float
    parameters: int
    planned: int
    at_once: int | None = None

    @property
    def runs(self) -> int:
        """How many runs there are."""
        return len(self.rates) * len(self.seeds)

    @property
    def finished(self) -> bool:
        """Whether every run took all its steps."""
        return self.steps[-1] >= self.planned

    @property
    def step_seconds(self) -> float:
        """What a step of one run takes, when all runs share the machine: the median.

        Between two looks the machine may have been busy with something else.
        """
        return float(np.median(self._step_seconds)) if len(self.steps) > 1 else 0.0

    @property
    def step_spread(self) -> float:
        """Half the distance between the quartiles of that; NaN if there are too few."""
        if len(self.steps) < 5:
            return float("nan")
        low, high = np.quantile(self._step_seconds, [0.25, 0.75])
        return float(high - low) / 2

    @property
    def _step_seconds(self) -> np.ndarray:
        """(looks - 1,), what a step of one run took before each look."""
        return np.diff(self.seconds) / np.diff(self.steps) / self.runs

    @cached_property
    def diverged(self) -> np.ndarray:
        """(rates, seeds), whether the loss, or the metric at the end, is no number."""
        fine = np.isfinite(self.loss).all(axis=-1)
        return np.logical_not(fine & np.isfinite(self.metric[..., -1]))

    @property
    def unmeasured(self) -> bool:
        """Whether the metric was never a number, though the losses were."""
        return bool(np.isfinite(self.loss).all() and not np.isfinite(self.metric).any())


@dataclass(frozen=True, eq=False)
class Outcome:
    """A whole race, or as much of it as there is.

    Attributes:
        problem: its name.
        about: a sentence about it.
        measure: what the metric is called.
        better: whether a lower or a higher metric wins.
        target: the metric to be reached, or `None`.
        machine: where it ran, in words.
        sweeps: one for each optimizer that has run, in the order asked for.
        missing: the optimizers that have not run yet, or could not, with the reason.
        remarks: what a reader must know about the problem, as sentences.
    """

    problem: str
    about: str
    measure: str
    better: Better
    target: float | None
    machine: str
    sweeps: tuple[Sweep, ...]
    missing: tuple[tuple[str, str], ...] = ()
    remarks: tuple[str, ...] = ()
