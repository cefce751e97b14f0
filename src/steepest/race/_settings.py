"""What is raced, in words and numbers: what a race writes down of itself."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from math import isfinite
from typing import Any

from ._problem import Problem
from .entrants import tidy

_WHO = "race"
_MOST_SEEDS = 10_000
# What makes a run what it is: a race that goes on must have the same.
_FIXED = "problem", "learning_rates", "seeds", "steps", "schedule"


@dataclass(frozen=True)
class Settings:
    """The arguments of `race`, as they are after all defaults.

    Attributes:
        problem: its name, by which it can be found again.
        optimizers, learning_rates, seeds, steps, target, schedule, time_budget: as for
            `race`.
    """

    problem: str
    optimizers: tuple[str, ...]
    learning_rates: tuple[float, ...]
    seeds: tuple[int, ...]
    steps: int
    target: float | None
    schedule: str | None
    time_budget: float | None


def settings_of(
    name: str,
    problem: Problem,
    given: Mapping[str, Any],
    before: Mapping[str, Any],
    seeds_differ: bool = True,
) -> Settings:
    """What was given; what is not, as it was before; else as the problem says.

    Args:
        name: of the problem, by which it can be found again.
        problem: what it says.
        given: arguments of `race`, `None` where nothing was said.
        before: the settings of the race that goes on; empty if there is none.
        seeds_differ: whether runs from two seeds can differ; if not, one is enough.
    """
    own = {f.name: getattr(problem, f.name, None) for f in fields(Settings)}
    said = {key: x for key, x in given.items() if x is not None}
    if not seeds_differ and before:
        said.pop("seeds", None)
    found = {key: {**own, **before, **said, "problem": name}[key] for key in own}
    settings = Settings(
        problem=name,
        optimizers=_optimizers(found["optimizers"]),
        learning_rates=_rates(found["learning_rates"]),
        seeds=_seeds(found["seeds"])[: None if seeds_differ or before else 1],
        steps=_count("steps", found["steps"]),
        target=_number("target", found["target"]),
        schedule=found["schedule"],
        time_budget=_number("time_budget", found["time_budget"], least=0.0),
    )
    for key in _FIXED if before else ():
        now, then = getattr(settings, key), before[key]
        if now != (tuple(then) if isinstance(then, list) else then):
            raise ValueError(
                f"{_WHO}: `{key}` is {now}, and the race that is to go on has {then}. "
                "Leave it out, or race in another folder."
            )
    return settings


def _optimizers(names: Any) -> tuple[str, ...]:
    if isinstance(names, str):
        names = [names]
    if not names or not all(isinstance(x, str) for x in names):
        raise ValueError(
            f"{_WHO}: `optimizers` is {names!r}, expected one name or more, such as "
            "['adamw', 'lookahead(adamw)']."
        )
    return _once("optimizers", tuple(map(tidy, names)))


def _rates(rates: Any) -> tuple[float, ...]:
    if isinstance(rates, int | float):
        rates = [rates]
    rates = tuple(_number("learning_rates", rate, least=0.0) for rate in rates)
    if not rates:
        raise ValueError(f"{_WHO}: `learning_rates` is empty, expected one or more.")
    return _once("learning_rates", tuple(sorted(rates)))


def _seeds(seeds: Any) -> tuple[int, ...]:
    if isinstance(seeds, int):
        seeds = range(min(_count("seeds", seeds), _MOST_SEEDS + 1))
    if len(seeds) > _MOST_SEEDS:
        raise ValueError(
            f"{_WHO}: there are more than {_MOST_SEEDS} `seeds`, and all run at once. "
            "Use fewer."
        )
    if not seeds or not all(isinstance(x, int) and 0 <= x < 2**32 for x in seeds):
        raise ValueError(
            f"{_WHO}: `seeds` is {seeds!r}, expected a count or numbers from 0 to "
            "2**32 - 1."
        )
    return _once("seeds", tuple(seeds))


def _once(name: str, xs: tuple[Any, ...]) -> tuple[Any, ...]:
    twice = [x for k, x in enumerate(xs) if x in xs[:k]]
    if twice:
        raise ValueError(f"{_WHO}: `{name}` has {twice[0]} twice, expected each once.")
    return xs


def count_of(name: str, x: Any) -> Any:
    """A count from 1 on, or `None`.

    Args:
        name: of an argument of `race`.
        x: what it is.
    """
    return None if x is None else _count(name, x)


def _count(name: str, x: Any) -> int:
    if isinstance(x, bool) or not isinstance(x, int) or x < 1:
        raise ValueError(f"{_WHO}: `{name}` is {x!r}, expected a count from 1 on.")
    return x


def _number(name: str, x: Any, least: float | None = None) -> Any:
    if x is None:
        return None
    wanted = "a number" if least is None else f"a number above {least:g}"
    if isinstance(x, bool) or not isinstance(x, int | float) or not isfinite(x):
        raise ValueError(f"{_WHO}: `{name}` has {x!r}, expected {wanted}.")
    if least is not None and x <= least:
        raise ValueError(f"{_WHO}: `{name}` has {x!r}, expected {wanted}.")
    return float(x)
