"""Types of options: each has a parser and a placeholder for the help text."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter, Token

from ..entrants import split_list
from . import _options as options


def _read_by(parser: Callable[[str], object], metavar: str) -> Parameter:
    """An option with its own parser. Its value may begin with a minus."""

    def convert(type_: object, tokens: Sequence[Token]) -> object:
        del type_
        return parser(tokens[0].value)

    return Parameter(
        converter=convert,
        n_tokens=1,
        metavar=metavar,
        allow_leading_hyphen=True,
        accepts_keys=False,
    )


Count = Annotated[int | None, _read_by(options.count, "N")]
File = Annotated[Path | None, _read_by(Path, "FILE")]
Folder = Annotated[Path | None, _read_by(Path, "FOLDER")]
Names = Annotated[list[str] | None, _read_by(split_list, "NAMES")]
Number = Annotated[float | None, _read_by(options.number, "NUMBER")]
Rates = Annotated[list[float] | None, _read_by(options.learning_rates, "RATES")]
Seeds = Annotated[int | list[int] | None, _read_by(options.seeds, "N|LIST")]
Log = Annotated[str | None, _read_by(options.logger, "LOGGER")]
Line = Annotated[str | None, _read_by(str, "TEXT")]
Sweep = Annotated[dict[str, Any] | None, _read_by(options.sweep, "NAME=VALUES")]
Time = Annotated[float | None, _read_by(options.duration, "TIME")]
