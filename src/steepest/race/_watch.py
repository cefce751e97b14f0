"""Who is told how a race goes."""

from collections.abc import Sequence

from ._outcome import Sweep


class Watch:
    """Is told of everything, and says nothing: to be derived from."""

    def begins(self, names: Sequence[str], runs: int, steps: int) -> None:
        """A race is about to begin.

        Args:
            names: the optimizers.
            runs: how many runs each of them has.
            steps: how many steps each run has.
        """

    def remarks(self, remark: str) -> None:
        """There is something to know about the problem before the race begins.

        Args:
            remark: a sentence.
        """

    def compiles(self, name: str) -> None:
        """An optimizer is about to be compiled.

        Args:
            name: which one.
        """

    def looks(self, sweep: Sweep) -> None:
        """Some more steps were taken.

        Args:
            sweep: all runs of an optimizer, so far.
        """

    def ends(self, sweep: Sweep) -> None:
        """An optimizer is done, or was found on disk.

        Args:
            sweep: all its runs.
        """

    def fails(self, name: str, why: str) -> None:
        """An optimizer cannot take part.

        Args:
            name: which one.
            why: what it said.
        """

    def stopped(self) -> bool:
        """Whether to end the race here, with what there is: asked after every look."""
        return False
