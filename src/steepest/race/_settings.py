"""The settings of a race: its arguments after all defaults."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, TypeVar

from ._problem import Problem
from ._values import COUNT, is_count, is_number, is_positive, NUMBER, POSITIVE
from .entrants import given, Meaning, Own, swept, Value

T = TypeVar("T")
_MOST_SEEDS = 10_000
# These determine the results, so a resumed race must have the same.
_FIXED = "problem", "learning_rates", "seeds", "steps", "schedule", "halving"


@dataclass(frozen=True)
class Settings:
    """The arguments of `race` after all defaults.

    Attributes:
        problem: its name, from which a resumed race loads it again.
        optimizers: their names.
        learning_rates, seeds, steps, target, schedule, time_budget, sweep, halving: as
            for `race`.
        named: what a name stands for, where it is not the text of the optimizer.
    """

    problem: str
    optimizers: tuple[str, ...]
    learning_rates: tuple[float, ...]
    seeds: tuple[int, ...]
    steps: int
    target: float | None
    schedule: str | None
    time_budget: float | None
    sweep: Mapping[str, tuple[Value, ...]] = field(hash=False)  # a dict has no hash
    halving: bool = False
    named: Mapping[str, Meaning] = field(default_factory=dict, hash=False)

    @property
    def entrants(self) -> Mapping[str, Meaning]:
        """The optimizers that run, by name: one for each value of `sweep`."""
        return self._swept[0]

    @property
    def written(self) -> Mapping[str, str | None]:
        """The text of each entrant whose name is another; `None` if it has none."""
        return _written(self.entrants)

    @property
    def stored(self) -> dict[str, object]:
        """The settings in a file. Functions and objects are not in it."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        return {**values, "named": _written(self.named)}

    @property
    def remarks(self) -> tuple[str, ...]:
        """Which optimizers `sweep` does not apply to, as sentences."""
        return self._swept[1]

    @cached_property
    def _swept(self) -> tuple[dict[str, Meaning], tuple[str, ...]]:
        all_of_them = {name: self.named.get(name, name) for name in self.optimizers}
        return swept(all_of_them, self.sweep)


def settings_of(
    name: str,
    problem: Problem,
    arguments: Mapping[str, object],
    before: Mapping[str, object],
    seeds_differ: bool = True,
) -> Settings:
    """Merge the arguments, the settings of a resumed race and the problem's defaults.

    Args:
        name: of the problem, from which a resumed race loads it again.
        problem: its defaults apply last.
        arguments: of `race`, `None` where omitted. They apply first.
        before: the settings of the race to resume; empty for a new race.
        seeds_differ: whether two seeds can give different runs; if not, one is raced.
    """
    defaults = {f.name: getattr(problem, f.name, None) for f in fields(Settings)}
    passed = {key: x for key, x in arguments.items() if x is not None}
    if not seeds_differ and before:
        passed.pop("seeds", None)
    merged: dict[str, Any] = {**defaults, **before, **passed}
    target, budget = merged["target"], merged["time_budget"]
    optimizers = _optimizers(merged["optimizers"], before)
    settings = Settings(
        problem=name,
        optimizers=tuple(optimizers),
        learning_rates=_rates(merged["learning_rates"]),
        seeds=_seeds(merged["seeds"])[: None if seeds_differ or before else 1],
        steps=_count("steps", merged["steps"]),
        target=None if target is None else _number("target", target),
        schedule=merged["schedule"],
        time_budget=None if budget is None else _positive("`time_budget`", budget),
        sweep=_sweep(merged["sweep"] or {}),
        halving=_switch("halving", merged["halving"] or False),
        named={name: x for name, x in optimizers.items() if x != name},
    )
    for key in _FIXED if before else ():
        # A folder of an older version has no `halving`.
        now, then = getattr(settings, key), before.get(key, False)
        if now != (tuple(then) if isinstance(then, list) else then):
            raise ValueError(
                f"race: `{key}` is {now}, but it is {then} in the race to resume. Omit "
                "it, or use another folder."
            )
    return settings


def _optimizers(optimizers: object, before: Mapping[str, Any]) -> dict[str, Meaning]:
    """The optimizers by name. A name means what it meant in the race to resume."""
    meanings = given(optimizers)
    named = before.get("named", {})
    then = {name: named.get(name, name) for name in before.get("optimizers", ())}
    for name, meaning in meanings.items():
        if name not in then:
            continue
        if meaning == name:  # only the name was passed
            meanings[name] = meaning = _again(name, then[name])
        text = meaning.text if isinstance(meaning, Own) else meaning
        if text != then[name]:
            raise ValueError(
                f"race: the optimizer `{name}` is {_shown(text)}, but it is "
                f"{_shown(then[name])} in the race to resume. Pass it as before, or "
                "use another name."
            )
    return meanings


def _again(name: str, text: str | None) -> str:
    if text is None:
        raise ValueError(
            f"race: the optimizer `{name}` of the race to resume was passed from "
            "Python, and files cannot store it. Resume from Python, and pass "
            f"`optimizers` again: {{{name!r}: ...}}."
        )
    return text


def _shown(text: str | None) -> str:
    return "an object" if text is None else f"`{text}`"


def _written(meanings: Mapping[str, Meaning]) -> dict[str, str | None]:
    """The texts of those whose name is another; `None` if there is none."""
    texts = {k: x.text if isinstance(x, Own) else x for k, x in meanings.items()}
    return {name: text for name, text in texts.items() if text != name}


def _rates(rates: Any) -> tuple[float, ...]:
    rates = _plain(rates)
    if isinstance(rates, int | float):
        rates = [rates]
    if isinstance(rates, str):
        raise ValueError(
            f"race: `learning_rates` is {rates!r}, expected numbers. A grid as text is "
            "for the command line and the file; pass "
            "`numpy.geomspace(1e-3, 1, 4)`, for example."
        )
    name = "a value of `learning_rates`"
    rates = tuple(_positive(name, _plain(rate)) for rate in rates)
    if not rates:
        raise ValueError("race: `learning_rates` is empty, expected one or more.")
    return _once("learning_rates", tuple(sorted(rates)))


def _seeds(seeds: Any) -> tuple[int, ...]:
    seeds = _plain(seeds)
    if isinstance(seeds, int):
        seeds = range(min(_count("seeds", seeds), _MOST_SEEDS + 1))
    sized = isinstance(seeds, Sequence) and not isinstance(seeds, str)
    if sized and len(seeds) > _MOST_SEEDS:
        raise ValueError(
            f"race: got more than {_MOST_SEEDS} `seeds`, and all run at once. Use "
            "fewer."
        )
    plain = tuple(map(_plain, seeds)) if sized else ()
    if not plain or not all(isinstance(x, int) and 0 <= x < 2**32 for x in plain):
        raise ValueError(
            f"race: `seeds` is {seeds!r}, expected a count, or a list of whole numbers "
            "from 0 to 2**32 - 1."
        )
    return _once("seeds", plain)


def _sweep(sweep: Any) -> dict[str, tuple[Value, ...]]:
    if not isinstance(sweep, Mapping) or not all(isinstance(x, str) for x in sweep):
        raise ValueError(
            f"race: `sweep` is {sweep!r}, expected a dict of values by argument, such "
            "as {'weight_decay': [0, 0.1]}."
        )
    return {name: _values(name, values) for name, values in sweep.items()}


def _values(name: str, values: Any) -> tuple[Value, ...]:
    if name == "learning_rate":
        raise ValueError(
            "race: `sweep` has `learning_rate`. Pass `learning_rates` instead "
            "(--learning-rates)."
        )
    plain = _plain(values)
    plain = [plain] if isinstance(plain, Value) else plain
    if not isinstance(plain, list | tuple | range) or not plain:
        raise ValueError(
            f"race: `sweep` of `{name}` is {values!r}, expected a list of values."
        )
    for x in (each := [_plain(x) for x in plain]):
        if not (isinstance(x, str | bool | None) or is_number(x)):
            raise ValueError(
                f"race: a value of `sweep` of `{name}` is {x!r}, expected {NUMBER}, a "
                "string, True, False or None."
            )
    return _once(f"sweep of {name}", tuple(each))


def _plain(x: Any) -> Any:
    """Arrays and numbers of NumPy and JAX as those of Python."""
    return x.tolist() if hasattr(x, "tolist") else x


def _once(argument: str, xs: tuple[T, ...]) -> tuple[T, ...]:
    twice = [x for k, x in enumerate(xs) if x in xs[:k]]
    if twice:
        raise ValueError(f"race: `{argument}` has {twice[0]} twice, expected it once.")
    return xs


def count_of(argument: str, x: object) -> int | None:
    """A whole number above 0, or `None`.

    Args:
        argument: the name of an argument of `race`.
        x: its value.
    """
    return None if x is None else _count(argument, x)


def _count(argument: str, x: object) -> int:
    if not is_count(x):
        raise ValueError(f"race: `{argument}` is {x!r}, expected {COUNT}.")
    return int(x)


def _switch(argument: str, x: object) -> bool:
    if not isinstance(x, bool):
        raise ValueError(f"race: `{argument}` is {x!r}, expected True or False.")
    return x


def _number(argument: str, x: object) -> float:
    if not is_number(x):
        raise ValueError(f"race: `{argument}` is {x!r}, expected {NUMBER}.")
    return float(x)


def _positive(what: str, x: object) -> float:
    if not is_positive(x):
        raise ValueError(f"race: {what} is {x!r}, expected {POSITIVE}.")
    return float(x)
