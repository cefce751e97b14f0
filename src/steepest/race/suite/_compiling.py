"""Compile the programs of a suite in threads, while others run."""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import partial
from math import inf

import jax

from ._arms import Arm
from ._members import Data, Members
from ._protocol import needed_by
from ._size import Size

Program = Callable[[], Members]
Make = Callable[[Arm, Size, Data], Members]
_POLL = 1.0  # seconds between two looks at the time that is left


@contextmanager
def compiling(
    size: Size,
    arms: Sequence[Arm],
    data: Data,
    ahead: int,
    needs: Callable[[Members], bool] = lambda members: True,
    left: Callable[[], float] = lambda: inf,
    make: Make = Members,
) -> Iterator[Iterator[tuple[Arm, Program]]]:
    """Pairs of an arm and its program, as soon as they can run.

    Without threads they come in the order of the arms. With threads, the next one is
    the first whose program is compiled and which waits for no other arm's numbers, so
    that the device has work.

    Args:
        size: of the suite.
        arms: most important first.
        data: the text.
        ahead: number of threads; 0 to compile in this one.
        needs: whether a program is needed; if not, it is only traced.
        left: the seconds that are left. At the end, the others come as they are.
        make: traces a program.
    """
    pool = ThreadPoolExecutor(max(ahead, 1))

    def made(arm: Arm, first: Future[Members] | None = None) -> Members:
        wait([first] if first else [])
        members = make(arm, size, data)
        return members.compile() if needs(members) else members

    def threaded() -> Iterator[tuple[Arm, Program]]:
        futures: dict[str, Future[Members]] = {}
        for arm in arms:
            # The first one alone: XLA measures the model's products on the device, and
            # all later programs of this process use what it chose.
            first = futures.get(arms[0].name)
            futures[arm.name] = pool.submit(made, arm, first)
        waiting = list(arms)
        while waiting:
            names = {arm.name for arm in waiting}
            free = [arm for arm in waiting if not names & needed_by(arm)]
            done = [arm for arm in free if futures[arm.name].done()]
            if not done and left() > 0:
                some = [futures[arm.name] for arm in free]
                wait(some, _POLL, FIRST_COMPLETED)
                continue
            arm = (done or free)[0]
            waiting.remove(arm)
            yield arm, futures[arm.name].result

    try:
        yield threaded() if ahead else ((arm, partial(made, arm)) for arm in arms)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def usual_ahead() -> int:
    """The number of programs to compile at the same time on an accelerator."""
    if jax.default_backend() == "cpu":
        return 0
    # Some cores are left for the program that runs, and XLA has threads of its own.
    return max(5 * (os.cpu_count() or 1) // 8, 1)
