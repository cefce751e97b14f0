"""Timing on noisy machines: the contenders take turns, and every turn is recorded."""

import gc
import math
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any

import jax

Turn = Callable[[], Mapping[str, float]]  # does the work; {quantity: seconds}
Times = dict[str, dict[str, list[float]]]  # {quantity: {contender: one per round}}

FEWEST = 5  # rounds, however long they take


def clock(f: Callable[..., Any], *args: Any, **kwargs: Any) -> tuple[float, Any]:
    """The seconds until the result of `f(*args, **kwargs)` is ready, and the result.

    Garbage is collected before the call and not during it, as in `timeit`: in whose
    turn a full collection happens is chance. This favors the contender that makes the
    most objects.
    """
    gc.collect()
    gc.disable()
    try:
        start = time.perf_counter()
        result = jax.block_until_ready(f(*args, **kwargs))
        return time.perf_counter() - start, result
    finally:
        gc.enable()


def race(
    turns: Mapping[str, Turn],
    rounds: int,
    *,
    warmups: int = 1,
    seconds: float = math.inf,
) -> Times:
    """Run every contender `rounds` times, in turns.

    Other load on the machine then affects all of them alike. Every second round runs in
    reverse order, since the order matters too.

    Args:
        turns: the contenders.
        rounds: number of rounds that count.
        warmups: number of rounds before them that do not count.
        seconds: time limit, applied once `FEWEST` rounds are done.
    """
    times: Times = defaultdict(lambda: {name: [] for name in turns})
    gc.freeze()  # collecting is faster if it can skip the objects from before
    end = time.perf_counter() + seconds
    try:
        for k in range(-warmups, rounds):
            if k >= FEWEST and time.perf_counter() > end:
                break
            for name in list(turns)[:: -1 if k % 2 else 1]:
                for quantity, spent in turns[name]().items():
                    if k >= 0:
                        times[quantity][name].append(spent)
    finally:
        gc.unfreeze()
    return times
