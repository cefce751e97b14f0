"""Callbacks of a race."""

from collections.abc import Sequence

from ._outcome import Sweep


class Watch:
    """Callbacks that do nothing. Derive from it to follow the progress of a race."""

    def begins(self, names: Sequence[str], runs: int, steps: int) -> None:
        """A race is about to begin.

        Args:
            names: the optimizers.
            runs: number of runs per optimizer.
            steps: number of steps per run.
        """

    def remarks(self, remark: str) -> None:
        """The problem has a peculiarity that the user should know of.

        Args:
            remark: a sentence.
        """

    def compiles(self, name: str) -> None:
        """An optimizer is about to be compiled.

        Args:
            name: which one.
        """

    def evaluates(self, sweep: Sweep) -> None:
        """More steps were taken.

        Args:
            sweep: all runs of an optimizer, so far.
        """

    def ends(self, sweep: Sweep) -> None:
        """An optimizer is done, or was loaded from disk.

        Args:
            sweep: all its runs.
        """

    def fails(self, name: str, why: str) -> None:
        """An optimizer cannot take part.

        Args:
            name: which one.
            why: the reason.
        """

    def stopped(self) -> bool:
        """Whether to stop the race now; called after every evaluation."""
        return False
