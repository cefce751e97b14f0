"""Clocks for noisy machines: the contenders take turns, and every turn is kept."""

import gc
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any

import jax

Turn = Callable[[], Mapping[str, float]]  # does the work; {quantity: seconds}
Times = dict[str, list[float]]  # {quantity: seconds of each turn}


def clock(f: Callable[..., Any], *args: Any) -> tuple[float, Any]:
    """The seconds until all of `f(*args)` is there, and what it is.

    Garbage is collected before and not meanwhile, as in `timeit`: on whose turn a full
    collection falls is luck. It spares most whoever makes most objects.
    """
    gc.collect()
    gc.disable()
    try:
        start = time.perf_counter()
        result = jax.block_until_ready(f(*args))
        return time.perf_counter() - start, result
    finally:
        gc.enable()


def race(turns: Mapping[str, Turn], repeats: int, warmups: int = 1) -> dict[str, Times]:
    """Run every contender `repeats` times, one after the other, again and again.

    Whatever else the machine does then disturbs all of them alike. Every second round
    goes backwards, for who follows whom matters too.

    Args:
        turns: the contenders.
        repeats: how many rounds count.
        warmups: how many rounds before them do not.
    """
    times: dict[str, Times] = {name: defaultdict(list) for name in turns}
    gc.freeze()  # collecting is quicker when it need not look at what was there before
    for k in range(-warmups, repeats):
        for name in list(turns)[:: -1 if k % 2 else 1]:
            for quantity, seconds in turns[name]().items():
                if k >= 0:
                    times[name][quantity].append(seconds)
    gc.unfreeze()
    return times
