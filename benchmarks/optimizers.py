"""What is compared: the same recipe, out of either library."""

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
    """One optimizer, as either library writes it."""

    make: Callable[..., Any]  # (library, learning rate) -> transformation
    period: int = 1  # after how many steps all of it has been done once
    extra: tuple[str, ...] = ()  # numbers its update wants besides


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
# These are compared as soon as both libraries have them.
RECIPES |= {
    name: Recipe(lambda lib, rate, name=name: getattr(lib.contrib, name)(rate))
    for name in ("shampoo", "soap", "kron")
    if all(hasattr(lib.contrib, name) for lib in LIBRARIES.values())
}


def _with_defaults(name: str) -> Recipe:
    """An optimizer of both libraries as it comes."""

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
    """The same, compiled, params and state donated: each library's own way."""
    if who == "steepest":
        return steepest.make_step(tx)
    return jax.jit(step_of(LIBRARIES[who], tx), donate_argnums=(0, 1))


def fresh_rates() -> Iterator[float]:
    """Learning rates near `RATE`, none of them twice, nor `RATE` itself.

    steepest shares its compiled formulas between equal transformations, and XLA may
    recognise equal programs: a new rate makes a new one of each. Neighbours differ by
    more than the last bit of a float32.
    """
    return (RATE * (1 + k * 1e-6) for k in count(1))
