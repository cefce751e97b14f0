"""The time of each of many steps that are waited for."""

import gc
from collections.abc import Callable
from time import perf_counter

# Three periods of what happens every tenth step do not count: in the first steps of a
# run, the factors of long sides are almost singular.
STEPS, SECONDS, WARMUPS = 100, 8.0, 32


def timed(
    step: Callable[[], None], before: Callable[[], None] | None = None
) -> list[float]:
    """The seconds of each of some steps, after a few that do not count.

    It ends after `SECONDS` and ten steps; if they take long, after a few.

    Args:
        step: makes one step, and waits for it.
        before: called before each step, without being timed.
    """
    seconds: list[float] = []

    def run() -> None:
        begun = perf_counter()
        for k in range(-WARMUPS, STEPS):
            if before is not None:
                before()
            start = perf_counter()
            step()
            if k >= 0 or perf_counter() - begun > SECONDS:
                seconds.append(perf_counter() - start)
            spent = perf_counter() - begun
            if spent > SECONDS and len(seconds) >= (10 if spent < 4 * SECONDS else 3):
                break

    gc.collect()
    gc.disable()  # in whose step a collection happens is chance
    try:
        run()
    finally:
        gc.enable()
    return seconds
