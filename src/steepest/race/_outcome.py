"""The results of a race."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from .report import Recommendation

Better = Literal["lower", "higher"]
Rate = float | None  # `None` for an optimizer that has no learning rate


@dataclass(frozen=True, eq=False)
class Sweep:
    """All runs of one optimizer: every learning rate with every seed.

    Runs are evaluated before the first step and then every few steps.

    Attributes:
        name: the optimizer, as written by the user: `lookahead(adamw)`.
        rates: the learning rates; `(None,)` for an optimizer without one.
        seeds: the seeds.
        steps: (times,), the steps after which the runs were evaluated; the first is 0.
        loss: (rates, seeds, times), the mean over the steps since the last evaluation;
            at step 0, the loss of the first step. NaN once a run has diverged.
        metric: (rates, seeds, times), the problem's metric.
        seconds: (times,), total time of all runs so far, without compiling.
        compiling: compile time in seconds.
        bytes_per_param: size of the optimizer's state.
        parameters: number of parameters of the model.
        planned: number of steps planned per run; more than `steps[-1]` if stopped.
        at_once: number of runs in memory at once; `None` if all were.
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
        """The number of runs."""
        return len(self.rates) * len(self.seeds)

    @property
    def finished(self) -> bool:
        """Whether every run took all its steps."""
        return self.steps[-1] >= self.planned

    @property
    def step_seconds(self) -> float:
        """Median seconds per step of one run, with all runs sharing the machine.

        A median, because the machine may have been busy between some evaluations.
        """
        return float(np.median(self._step_seconds)) if len(self.steps) > 1 else 0.0

    @property
    def step_spread(self) -> float:
        """Half the interquartile range of that; NaN with fewer than 5 evaluations."""
        if len(self.steps) < 5:
            return float("nan")
        low, high = np.quantile(self._step_seconds, [0.25, 0.75])
        return float(high - low) / 2

    @property
    def _step_seconds(self) -> np.ndarray:
        """(times - 1,), seconds per step of one run between evaluations."""
        return np.diff(self.seconds) / np.diff(self.steps) / self.runs

    @cached_property
    def diverged(self) -> np.ndarray:
        """(rates, seeds), whether the loss or the final metric is not finite."""
        fine = np.isfinite(self.loss).all(axis=-1)
        return np.logical_not(fine & np.isfinite(self.metric[..., -1]))

    @property
    def unmeasured(self) -> bool:
        """Whether the metric was never finite, although all losses were."""
        return bool(np.isfinite(self.loss).all() and not np.isfinite(self.metric).any())


@dataclass(frozen=True, eq=False)
class Outcome:
    """The results of a race, which may be unfinished.

    Attributes:
        problem: its name.
        about: a sentence about it.
        measure: the name of the metric.
        better: whether a lower or a higher metric wins.
        target: the value of the metric to reach, or `None`.
        machine: where it ran, in words.
        sweeps: one for each optimizer that ran, in the order requested.
        missing: the optimizers that did not run, each with the reason.
        remarks: peculiarities of the problem, as sentences.
        schedule: the learning-rate schedule, as for `race`.
        source: where the problem was loaded from, such as `my_module:problem`; `None`
            if it was passed as an object.
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
    schedule: str | None = None
    source: str | None = None

    def recommendation(self) -> "Recommendation | None":
        """Which optimizer to use, and the second choice; `None` without results.

        `print(outcome.recommendation())` shows the reasons and the code.
        """
        from .report import recommendation

        return recommendation(self)

    def to_pandas(self, kind: Literal["standings", "curves"] = "standings") -> Any:
        """The numbers as a pandas frame; needs pandas.

        Args:
            kind: `"standings"` has a row for each optimizer, as in the table;
                `"curves"` a row for each evaluation of each run, with its optimizer,
                learning rate, seed, step, seconds, loss and metric.
        """
        from .report import frame

        return frame(self, kind)

    def _repr_html_(self) -> str:
        """The recommendation and the table, for notebooks."""
        from .report import notebook

        return notebook(self)
