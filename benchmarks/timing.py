"""Clocks for noisy machines: the contenders take turns, and every turn is kept."""

import gc
import math
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any

import jax

Turn = Callable[[], Mapping[str, float]]  # does the work; {quantity: seconds}
Times = dict[str, dict[str, list[float]]]  # {quantity: {contender: one a round}}

FEWEST = 5  # rounds, however long they take


def clock(f: Callable[..., Any], *args: Any, **kwargs: Any) -> tuple[float, Any]:
    """The seconds until all of `f(*args, **kwargs)` is there, and what it is.

    Garbage is collected before and not meanwhile, as in `timeit`: on whose turn a full
    collection falls is luck. It spares most whoever makes most objects.
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
    """Run every contender `rounds` times, one after the other, again and again.

    Whatever else the machine does then disturbs all of them alike. Every second round
    goes backwards, for who follows whom matters too.

    Args:
        turns: the contenders.
        rounds: how many rounds count.
        warmups: how many rounds before them do not.
        seconds: after which it ends, if `FEWEST` rounds are done.
    """
    times: Times = defaultdict(lambda: {name: [] for name in turns})
    gc.freeze()  # collecting is quicker when it need not look at what was there before
    end = time.perf_counter() + seconds
    for k in range(-warmups, rounds):
        if k >= FEWEST and time.perf_counter() > end:
            break
        for name in list(turns)[:: -1 if k % 2 else 1]:
            for quantity, spent in turns[name]().items():
                if k >= 0:
                    times[quantity][name].append(spent)
    gc.unfreeze()
    return times
