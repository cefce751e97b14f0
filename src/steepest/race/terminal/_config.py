"""Race options in a TOML file.

    [race]
    problem = "digits"
    optimizers = ["adamw", "muon", "lookahead(adamw)"]
    learning-rates = "1e-4:1:8"
    seeds = 3
    time-budget = "5m"

A key is an option of `steepest race`, with dashes or underscores.
"""

import difflib
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from ..entrants import brief, split_list
from . import _options as options


class Key(NamedTuple):
    """The values that a key accepts."""

    kinds: tuple[type, ...]
    expected: str  # the kinds, in words
    read: Callable[[str], object] = str  # the parser of the command line
    several: bool = False  # whether a list is accepted too


_NUMBER = int, float, str
_LONGEST = 50_000  # bytes per file
_MOST_DOTS = 1000  # per line
KEYS = {
    "problem": Key((str,), "a string"),
    "optimizers": Key((str,), "a list of strings", split_list, True),
    "learning_rates": Key(
        _NUMBER, "a list of numbers, or a string", options.learning_rates, True
    ),
    "steps": Key((int,), "a whole number", options.count),
    "seeds": Key((int, str), "a whole number, or a list of them", options.seeds, True),
    "target": Key((int, float), "a number", options.number),
    "schedule": Key((str,), "a string"),
    "time_budget": Key(
        _NUMBER, "a number of seconds, or a string like '5m'", options.duration
    ),
    "sweep": Key(
        (dict, str), "a table, { weight_decay = [0, 0.1] }, or a string", options.sweep
    ),
    "halving": Key((bool,), "true or false"),
    "at_once": Key((int,), "a whole number", options.count),
    "out": Key((str,), "a string", Path),
    "resume": Key((bool,), "true or false"),
    "json": Key((str,), "a string", Path),
    "log": Key((str,), "wandb, trackio or tensorboard", options.logger),
}


def read(path: Path) -> dict[str, Any]:
    """Read the options in a TOML file, parsed as on the command line.

    Args:
        path: a TOML file with the keys at the top level or in a `[race]` table.
    """
    table = _table(path)
    inner = table.pop("race", {})
    if not isinstance(inner, dict):
        raise ValueError(
            f"{path}: `race` is {brief(inner)}, expected a table: `[race]`."
        )
    values: dict[str, Any] = {}
    for key, value in [*table.items(), *inner.items()]:
        name = key.replace("-", "_")
        if name not in KEYS:
            raise ValueError(_unknown(path, key))
        if name in values:
            raise ValueError(f"{path}: `{key}` is set twice. Remove one of them.")
        values[name] = _value(path, key, value, KEYS[name])
    return values


def _table(path: Path) -> dict[str, object]:
    with path.open("rb") as file:
        content = file.read(_LONGEST + 1)
    if len(content) > _LONGEST:
        raise ValueError(
            f"{path}: the file is too large, expected at most {_LONGEST} bytes."
        )
    # tomllib takes seconds to parse a key with thousands of parts.
    deep = any(line.count(b".") > _MOST_DOTS for line in content.splitlines())
    try:
        if deep:
            raise RecursionError
        # Some editors write a byte-order mark.
        return tomllib.loads(content.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise ValueError(f"{path}: this is not UTF-8 text. Save it as UTF-8.") from None
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{path}: this is not valid TOML: {_cut(error)}.") from None
    except RecursionError:
        raise ValueError(f"{path}: the TOML is nested too deeply.") from None
    except ValueError as error:  # a number with thousands of digits, a date in month 13
        raise ValueError(f"{path}: cannot read the file: {_cut(error)}.") from None


def _cut(error: Exception) -> str:
    return str(error)[:200].rstrip(".")


def _value(path: Path, key: str, value: object, rule: Key) -> object:
    several = isinstance(value, list) and rule.several
    items = value if isinstance(value, list) and rule.several else [value]
    for one in items:
        if type(one) not in rule.kinds:  # `isinstance` would accept `true` as an int
            raise TypeError(
                f"{path}: `{key}` is {brief(value)}, expected {rule.expected}."
            )
    try:
        parsed = [
            one if isinstance(one, bool | dict) else rule.read(str(one))
            for one in items
        ]
    except ValueError as error:
        raise ValueError(f"{path}: `{key}`: {error}") from None
    if not several:
        return parsed[0]
    return [x for part in parsed for x in (part if isinstance(part, list) else [part])]


def _unknown(path: Path, key: str) -> str:
    known = [name.replace("_", "-") for name in KEYS]
    near = difflib.get_close_matches(key.replace("_", "-")[:99], known)
    hint = f"Did you mean `{near[0]}`?" if near else f"Options: {', '.join(known)}."
    return f"{path}: unknown option `{brief(key)[1:-1]}`. {hint}"
