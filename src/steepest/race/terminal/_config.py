"""A race in a TOML file, so that it can be run again.

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
    """What may stand at a key."""

    kinds: tuple[type, ...]
    wanted: str  # the kinds, in words
    read: Callable[[str], Any] = str  # as on the command line
    several: bool = False  # whether a list of such may stand there too


_NUMBER = int, float, str
_LONGEST = 50_000  # bytes of a file
_MOST_DOTS = 1000  # in a line
KEYS = {
    "problem": Key((str,), "a text"),
    "optimizers": Key((str,), "a list of texts", split_list, True),
    "learning_rates": Key(
        _NUMBER, "a list of numbers, or a text", options.learning_rates, True
    ),
    "steps": Key((int,), "a whole number", options.count),
    "seeds": Key((int, str), "a whole number, or a list of them", options.seeds, True),
    "target": Key((int, float), "a number", options.number),
    "schedule": Key((str,), "a text"),
    "time_budget": Key(
        _NUMBER, "a number of seconds, or a text like '5m'", options.duration
    ),
    "at_once": Key((int,), "a whole number", options.count),
    "out": Key((str,), "a text", Path),
    "resume": Key((bool,), "true or false"),
    "json": Key((str,), "a text", Path),
}


def read(path: Path) -> dict[str, Any]:
    """What a file says, by option, as the command line would have it.

    Args:
        path: a TOML file, with the keys at the top or in a table `[race]`.
    """
    table = _table(path)
    inner = table.pop("race", {})
    if not isinstance(inner, dict):
        raise ValueError(
            f"{path}: `race` is {brief(inner)}, expected a table: `[race]`."
        )
    found: dict[str, Any] = {}
    for key, value in [*table.items(), *inner.items()]:
        name = key.replace("-", "_")
        if name not in KEYS:
            raise ValueError(_unknown(path, key))
        if name in found:
            raise ValueError(f"{path}: `{key}` is there twice. Keep one of them.")
        found[name] = _value(path, key, value, KEYS[name])
    return found


def _table(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        content = file.read(_LONGEST + 1)
    if len(content) > _LONGEST:
        raise ValueError(
            f"{path}: this has more than {_LONGEST} bytes. A race is written in fewer."
        )
    # The parser takes seconds for a key of thousands of parts.
    deep = any(line.count(b".") > _MOST_DOTS for line in content.splitlines())
    try:
        if deep:
            raise RecursionError
        # Some editors put a mark of three bytes at the beginning.
        return tomllib.loads(content.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise ValueError(
            f"{path}: this is no text in UTF-8. Save it as that."
        ) from None
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{path}: this is no TOML: {_cut(error)}.") from None
    except RecursionError:
        raise ValueError(f"{path}: this is nested too deeply.") from None
    except ValueError as error:  # a number of thousands of digits, a date in month 13
        raise ValueError(f"{path}: this cannot be read: {_cut(error)}.") from None


def _cut(error: Exception) -> str:
    return str(error)[:200].rstrip(".")


def _value(path: Path, key: str, value: Any, wanted: Key) -> Any:
    several = wanted.several and isinstance(value, list)
    items = value if several else [value]
    for one in items:
        if type(one) not in wanted.kinds:  # `true` is an `int` to `isinstance`
            raise TypeError(
                f"{path}: `{key}` is {brief(value)}, expected {wanted.wanted}."
            )
    try:
        found = [
            one if isinstance(one, bool) else wanted.read(str(one)) for one in items
        ]
    except ValueError as error:
        raise ValueError(f"{path}: `{key}`: {error}") from None
    if not several:
        return found[0]
    return [x for part in found for x in (part if isinstance(part, list) else [part])]


def _unknown(path: Path, key: str) -> str:
    known = [name.replace("_", "-") for name in KEYS]
    near = difflib.get_close_matches(key.replace("_", "-")[:99], known)
    hint = f"Is it `{near[0]}`?" if near else f"Known are {', '.join(known)}."
    return f"{path}: there is no option `{brief(key)[1:-1]}`. {hint}"
