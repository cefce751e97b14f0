"""Progress of a running race: bars on a terminal, nothing in a pipe."""

import sys
import time
from collections.abc import Callable, Sequence

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TaskID
from rich.text import Text

from .._outcome import Sweep
from .._problem import Problem
from .._standings import Standing, standing, worth
from .._watch import Watch
from ..report import at_rate, count, number
from ._stop import Stop


class Quiet(Watch):
    """Shows no progress, and stops the race on request.

    Args:
        stop: knows whether a stop was requested.
    """

    def __init__(self, stop: Stop) -> None:
        self.stop = stop

    def __enter__(self) -> "Quiet":
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def remarks(self, remark: str) -> None:
        """Print a remark on stderr: it may be a reason to stop the race.

        Args:
            remark: a sentence.
        """
        print(f"note: {remark}", file=sys.stderr)

    def stopped(self) -> bool:
        """Whether to stop the race now."""
        return self.stop.asked


class Bars(Quiet):
    """A bar for the race, and one for each optimizer.

    Args:
        stop: knows whether a stop was requested.
        problem: the problem that is raced.
        console: where to draw.
        budget: the time budget in seconds, or `None`.
    """

    def __init__(
        self,
        stop: Stop,
        problem: Problem,
        console: Console,
        budget: float | None = None,
    ) -> None:
        super().__init__(stop)
        self.problem, self.budget = problem, budget
        bar = BarColumn(24, complete_style="cyan", finished_style="green")
        columns = _Field("name"), bar, _Field("state")
        self.progress = Progress(*columns, console=console)
        self.tasks: dict[str, TaskID] = {}
        self.best: dict[str, Standing] = {}
        self.done: dict[str, float] = {}  # fraction done, by optimizer
        self.loaded = 0  # number of optimizers loaded from disk
        self.began = time.monotonic()
        stop.tell = lambda: None  # the bar says so

    def __enter__(self) -> "Bars":
        self.progress.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.progress.stop()

    def remarks(self, remark: str) -> None:
        """Print it above the bars.

        Args:
            remark: a sentence.
        """
        self.progress.console.print(Text(f"note: {remark}"))

    def begins(self, names: Sequence[str], runs: int, steps: int) -> None:
        """Draw the bars.

        Args:
            names: the optimizers.
            runs: number of runs per optimizer.
            steps: number of steps per run.
        """
        self.began = time.monotonic()
        self.whole = self._add(self.problem.name, len(names), self._summary)
        waiting = f"{runs} runs of {count(steps)} steps"
        for name in names:
            self.tasks[name] = self._add(f"  {name}", 1, lambda: waiting)

    def compiles(self, name: str) -> None:
        """Show that an optimizer is being compiled.

        Args:
            name: of the optimizer.
        """
        self._show(name, 0.0, "compiling")

    def evaluates(self, sweep: Sweep) -> None:
        """Advance the bar and show the best result so far.

        Args:
            sweep: all runs of an optimizer, so far.
        """
        self._show(sweep.name, _share(sweep), f"{_steps(sweep)}, {self._best(sweep)}")

    def ends(self, sweep: Sweep) -> None:
        """Show the best result. The bar is full if all steps were taken.

        Args:
            sweep: all runs of an optimizer.
        """
        self.loaded += sweep.name not in self.done
        best = self._best(sweep)
        state = best if sweep.finished else f"{_steps(sweep)}, {best}"
        self._show(sweep.name, _share(sweep), state, over=True)

    def fails(self, name: str, why: str) -> None:
        """Show why an optimizer failed.

        Args:
            name: of the optimizer.
            why: the reason.
        """
        self._show(name, 0.0, why.split("\n")[0], over=True)

    def _add(self, name: str, total: int, state: Callable[[], str]) -> TaskID:
        return self.progress.add_task("", total=total, name=lambda: name, state=state)

    def _show(self, name: str, done: float, state: str, over: bool = False) -> None:
        self.done[name] = 1.0 if over else done
        self.progress.update(self.tasks[name], completed=done, state=lambda: state)
        self.progress.update(self.whole, completed=sum(self.done.values()))

    def _best(self, sweep: Sweep) -> str:
        """The metric of an optimizer at its best learning rate, in words."""
        row = self.best[sweep.name] = standing(sweep, self.problem.better)
        if np.isnan(row.metric):
            return "diverged"
        value = number(row.metric, row.spread)
        return f"{self.problem.measure} {value}{at_rate(row.rate)}"

    def _summary(self) -> str:
        """The elapsed time, the time left and the leader; redrawn constantly."""
        if self.stop.asked:
            return "stopping at the next evaluation; Ctrl-C again quits at once"
        spent = time.monotonic() - self.began
        words = [_clock(spent)]
        left = self._left(spent)
        if left is not None:
            words.append(f"{_clock(left)} left")
        rows = [row for row in self.best.values() if not np.isnan(row.metric)]
        if rows:
            value = lambda row: worth(row.metric, self.problem.better)
            words.append("best " + max(rows, key=value).name)
        return ", ".join(words)

    def _left(self, spent: float) -> float | None:
        """The seconds left, assuming a constant pace."""
        done = sum(self.done.values()) - self.loaded
        todo = len(self.tasks) - self.loaded - done
        left = None if done <= 0 else spent * todo / done
        if self.budget is None:
            return left
        rest = max(self.budget - spent, 0.0)
        return rest if left is None else min(left, rest)


def _share(sweep: Sweep) -> float:
    return sweep.steps[-1] / max(sweep.planned, 1)


def _steps(sweep: Sweep) -> str:
    return f"{count(sweep.steps[-1])} of {count(sweep.planned)} steps"


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02}"


class _Field(ProgressColumn):
    """A column that shows the current value of a task's field."""

    def __init__(self, field: str) -> None:
        super().__init__()
        self.field = field

    def render(self, task: Task) -> Text:
        return Text(task.fields[self.field](), overflow="ellipsis", no_wrap=True)
