"""The results of a race."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, TYPE_CHECKING

import numpy as np

from ._visible import visible

if TYPE_CHECKING:
    from .report import Recommendation

Better = Literal["lower", "higher"]
Rate = float | None  # `None` for an optimizer that has no learning rate


@dataclass(frozen=True, eq=False, repr=False)
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
        stopped: (rates,), the step at which halving stopped a learning rate, or `None`
            if it did not. Loss and metric are NaN from there on. Empty without halving.
        shared: (times,), number of runs that shared the time since the last evaluation;
            the first is 0. Empty without halving: then it is always `runs`.
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
    stopped: tuple[int | None, ...] = ()
    shared: tuple[int, ...] = ()

    def __repr__(self) -> str:
        rates, seeds, steps = len(self.rates), len(self.seeds), self.steps[-1]
        counts = f"learning rates: {rates}, seeds: {seeds}, steps: {steps}"
        return visible(f"<Sweep of {self.name}, {counts}>")

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
    def timed(self) -> bool:
        """Whether the time of a step is more than noise: above twice its spread.

        Between two evaluations, few short steps may take less time than the evaluation
        varies.
        """
        noise = 0.0 if np.isnan(self.step_spread) else 2 * self.step_spread
        return self.step_seconds > noise

    @property
    def _step_seconds(self) -> np.ndarray:
        """(times - 1,), seconds per step of one run between evaluations."""
        return np.diff(self.run_seconds) / np.diff(self.steps)

    @cached_property
    def run_seconds(self) -> np.ndarray:
        """(times,), seconds of one run so far: its share of the time of all runs."""
        if not self.shared:
            return np.asarray(self.seconds) / self.runs
        parts = np.diff(self.seconds) / np.asarray(self.shared[1:])
        return np.concatenate([[0.0], np.cumsum(parts)])

    @cached_property
    def last(self) -> np.ndarray:
        """(rates,), index of the last evaluation of each learning rate."""
        end = len(self.steps) - 1
        if not self.stopped:
            return np.full(len(self.rates), end)
        places = [end if s is None else self.steps.index(s) for s in self.stopped]
        return np.asarray(places)

    @property
    def running(self) -> tuple[int, ...]:
        """Indices of the learning rates that halving has not stopped."""
        alive = self.stopped or (None,) * len(self.rates)
        return tuple(k for k, step in enumerate(alive) if step is None)

    @property
    def unknown(self) -> np.ndarray:
        """(rates,), whether halving has stopped a rate that did not diverge."""
        gone = [k not in self.running for k in range(len(self.rates))]
        return np.asarray(gone) & np.logical_not(self.diverged.any(axis=1))

    @cached_property
    def diverged(self) -> np.ndarray:
        """(rates, seeds), whether the loss or the last metric is not finite."""
        made = np.arange(len(self.steps)) <= self.last[:, None]
        fine = (np.isfinite(self.loss) | ~made[:, None]).all(axis=-1)
        return np.logical_not(fine & np.isfinite(self.latest))

    @property
    def latest(self) -> np.ndarray:
        """(rates, seeds), the metric at the last evaluation of each learning rate."""
        return self.metric[np.arange(len(self.rates)), :, self.last]

    @property
    def ends(self) -> np.ndarray:
        """(rates, seeds), the final metric; NaN if a run diverged or was stopped."""
        alive = np.isin(np.arange(len(self.rates)), self.running)
        known = alive[:, None] & np.logical_not(self.diverged)
        return np.where(known, self.metric[..., -1], np.nan)

    @property
    def unmeasured(self) -> bool:
        """Whether the metric was never finite, although all losses were."""
        return bool(
            np.isfinite(self.loss[list(self.running)]).all()
            and not np.isfinite(self.metric).any()
        )


@dataclass(frozen=True, eq=False, repr=False)
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
        halving: whether hopeless learning rates were stopped early, as for `race`.
        written: the text of each optimizer whose name is another; `None` if it was
            passed as an object.
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
    halving: bool = False
    written: Mapping[str, str | None] = field(default_factory=dict)

    def __repr__(self) -> str:
        advice, many = self.recommendation(), len(self.sweeps)
        use = "none" if advice is None else advice.first.title
        told = f"{self.problem}, optimizers: {many}, recommended: {use}"
        return visible(f"<Outcome of {told}>")

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
