"""How a race goes, while it runs: bars on a terminal, nothing in a pipe."""

import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

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
    """Says nothing, and ends the race when it is asked to.

    Args:
        stop: who is asked.
    """

    def __init__(self, stop: Stop) -> None:
        self.stop = stop

    def __enter__(self) -> "Quiet":
        return self

    def __exit__(self, *error: Any) -> None:
        pass

    def remarks(self, remark: str) -> None:
        """Say it, also in a pipe: it may be a reason not to wait for the race.

        Args:
            remark: a sentence.
        """
        print(f"note: {remark}", file=sys.stderr)

    def stopped(self) -> bool:
        """Whether to end the race here."""
        return self.stop.asked


class Bars(Quiet):
    """A bar for the race, and one for each optimizer.

    Args:
        stop: who is asked whether to end.
        problem: what the race is about.
        console: where to draw.
        budget: how many seconds there are, or `None`.
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
        self.done: dict[str, float] = {}  # which share of each optimizer is over
        self.found = 0  # how many optimizers were on disk
        self.began = time.monotonic()
        stop.tell = lambda: None  # the bar says so

    def __enter__(self) -> "Bars":
        self.progress.start()
        return self

    def __exit__(self, *error: Any) -> None:
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
            runs: how many runs each of them has.
            steps: how many steps each run has.
        """
        self.began = time.monotonic()
        self.whole = self._add(self.problem.name, len(names), self._summary)
        waiting = f"{runs} runs of {count(steps)} steps"
        for name in names:
            self.tasks[name] = self._add(f"  {name}", 1, lambda: waiting)

    def compiles(self, name: str) -> None:
        """Say so.

        Args:
            name: of the optimizer.
        """
        self._show(name, 0.0, "compiling")

    def looks(self, sweep: Sweep) -> None:
        """Move the bar, and show the best so far.

        Args:
            sweep: all runs of an optimizer, so far.
        """
        self._show(sweep.name, _share(sweep), f"{_steps(sweep)}, {self._best(sweep)}")

    def ends(self, sweep: Sweep) -> None:
        """Show the best; the bar is full, if all steps were taken.

        Args:
            sweep: all runs of an optimizer.
        """
        self.found += sweep.name not in self.done
        best = self._best(sweep)
        state = best if sweep.finished else f"{_steps(sweep)}, {best}"
        self._show(sweep.name, _share(sweep), state, over=True)

    def fails(self, name: str, why: str) -> None:
        """Show the reason.

        Args:
            name: of the optimizer.
            why: what it said.
        """
        self._show(name, 0.0, why.split("\n")[0], over=True)

    def _add(self, name: str, total: int, state: Callable[[], str]) -> TaskID:
        return self.progress.add_task("", total=total, name=lambda: name, state=state)

    def _show(self, name: str, done: float, state: str, over: bool = False) -> None:
        self.done[name] = 1.0 if over else done
        self.progress.update(self.tasks[name], completed=done, state=lambda: state)
        self.progress.update(self.whole, completed=sum(self.done.values()))

    def _best(self, sweep: Sweep) -> str:
        """The best learning rate of an optimizer, in words."""
        row = self.best[sweep.name] = standing(sweep, self.problem.better)
        if np.isnan(row.metric):
            return "diverged"
        found = number(row.metric, row.spread)
        return f"{self.problem.measure} {found}{at_rate(row.rate)}"

    def _summary(self) -> str:
        """The time, the time left, and who is ahead; drawn again all the time."""
        if self.stop.asked:
            return "stopping after this look; Ctrl-C again ends at once"
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
        """The seconds left, if the rest is as fast as what was done."""
        done = sum(self.done.values()) - self.found
        todo = len(self.tasks) - self.found - done
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
    """What one of a task's fields says right now."""

    def __init__(self, field: str) -> None:
        super().__init__()
        self.field = field

    def render(self, task: Task) -> Text:
        return Text(task.fields[self.field](), overflow="ellipsis", no_wrap=True)
