"""The optimizers to compare: each recipe works with either library."""

from collections.abc import Callable, Iterator
from itertools import count
from types import ModuleType
from typing import Any, NamedTuple

import jax
import optax
import optax.contrib

import steepest

from .finite import maker, NAMES

LIBRARIES: dict[str, ModuleType] = {"steepest": steepest, "optax": optax}
RATE = 1e-3


class Recipe(NamedTuple):
    """One optimizer, written for either library."""

    make: Callable[..., Any]  # (library, learning rate) -> transformation
    period: int = 1  # number of steps until every part of it has run
    extra: tuple[str, ...] = ()  # numbers that its update also needs


RECIPES: dict[str, Recipe] = {
    "clip+adamw": Recipe(
        lambda lib, rate: lib.chain(lib.clip_by_global_norm(1.0), lib.adamw(rate))
    ),
    "adamw": Recipe(lambda lib, rate: lib.adamw(rate)),
    "sgd+momentum": Recipe(lambda lib, rate: lib.sgd(rate, momentum=0.9)),
    "lion": Recipe(lambda lib, rate: lib.lion(rate)),
    "adafactor": Recipe(lambda lib, rate: lib.adafactor(rate)),
    "schedule-free": Recipe(lambda lib, rate: lib.contrib.schedule_free_adamw(rate)),
    "multisteps": Recipe(
        lambda lib, rate: lib.MultiSteps(lib.adamw(rate), 4).gradient_transformation(),
        period=4,
    ),
    "muon": Recipe(lambda lib, rate: lib.contrib.muon(rate)),
}
# Compared as soon as both libraries have them.
RECIPES |= {
    name: Recipe(lambda lib, rate, name=name: getattr(lib.contrib, name)(rate))
    for name in ("shampoo", "soap", "kron")
    if all(hasattr(lib.contrib, name) for lib in LIBRARIES.values())
}
# What Optax does not have, beside what its users would take.
BESIDE = {
    "soap, optax muon": Recipe(
        lambda lib, rate: lib.soap(rate) if lib is steepest else lib.contrib.muon(rate)
    )
}


def _with_defaults(name: str) -> Recipe:
    """An optimizer of both libraries, with its defaults."""

    def make(lib: ModuleType, rate: float) -> Any:
        del rate
        return lib.with_extra_args_support(maker(lib, name)())

    return Recipe(make, extra=("value",))


EVERY: dict[str, Recipe] = {name: _with_defaults(name) for name in NAMES}


def step_of(lib: ModuleType, tx: Any) -> Callable[..., tuple[Any, Any]]:
    """Update and apply, as a new function of `(params, state, grads)`."""

    def step(params: Any, state: Any, grads: Any, **extra: Any) -> tuple[Any, Any]:
        updates, state = tx.update(grads, state, params, **extra)
        return lib.apply_updates(params, updates), state

    return step


def donated(who: str, tx: Any) -> Any:
    """The same, compiled, with params and state donated in each library's own way."""
    if who == "steepest":
        return steepest.make_step(tx)
    return jax.jit(step_of(LIBRARIES[who], tx), donate_argnums=(0, 1))


def fresh_rates() -> Iterator[float]:
    """Learning rates near `RATE`, all different and none equal to `RATE`.

    steepest shares its compiled formulas between equal transformations, and XLA may
    recognize equal programs: a new rate makes each of them new. Neighbors differ by
    more than the last bit of a float32.
    """
    return (RATE * (1 + k * 1e-6) for k in count(1))
