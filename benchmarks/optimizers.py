"""What is compared: the same recipe, out of either library."""

from collections.abc import Callable, Iterator
from itertools import count
from types import ModuleType
from typing import Any

import optax

import steepest

LIBRARIES: dict[str, ModuleType] = {"steepest": steepest, "optax": optax}

Recipe = Callable[[Any, float], Any]  # (library, learning rate) -> transformation

RECIPES: dict[str, Recipe] = {
    "clip+adamw": lambda lib, rate: lib.chain(
        lib.clip_by_global_norm(1.0), lib.adamw(rate)
    ),
    "adamw": lambda lib, rate: lib.adamw(rate),
    "sgd+momentum": lambda lib, rate: lib.sgd(rate, momentum=0.9),
    "lion": lambda lib, rate: lib.lion(rate),
}

RATE = 1e-3


def fresh_rates() -> Iterator[float]:
    """Learning rates near `RATE`, none of them twice, nor `RATE` itself.

    steepest shares its compiled formulas between equal transformations, and XLA may
    recognise equal programs: a new rate makes a new one of each. Neighbours differ by
    more than the last bit of a float32.
    """
    return (RATE * (1 + k * 1e-6) for k in count(1))
