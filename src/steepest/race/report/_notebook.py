"""A race in a notebook: HTML below a cell, and pandas frames."""

from importlib import import_module
from typing import Any, Literal

from .._outcome import Outcome
from ._advice import recommendation
from ._columns import columns, notes, verdict
from ._markup import tag, words
from ._records import curve_records, flat, standing_records

Kind = Literal["standings", "curves"]


def notebook(outcome: Outcome) -> str:
    """The recommendation, the table and the notes as a piece of HTML.

    It has no style of its own, so that it follows the notebook's theme.

    Args:
        outcome: of a race.
    """
    headers, rows = columns(outcome)
    advice = recommendation(outcome)
    parts = [tag("p", tag("b", words(outcome.problem)), " ", words(outcome.about))]
    if advice is None:
        parts.append(tag("p", words(verdict(outcome))))
    choices = () if advice is None else (advice.first, advice.second)
    for title, choice in zip(("Use", "Second choice:"), choices, strict=False):
        if choice is not None:
            name = tag("b", words(f"{title} {choice.title}"))
            parts.append(tag("p", name, ": ", words(choice.why)))
            parts.append(tag("pre", words(choice.line)) if choice.line else "")
    if rows:
        top = tag("thead", tag("tr", *(tag("th", words(h)) for h in headers)))
        body = [tag("tr", *(tag("td", words(x)) for x in row)) for row in rows]
        parts.append(tag("table", top, tag("tbody", *body)))
    parts += [tag("p", tag("small", words(note))) for note in notes(outcome)]
    return tag("div", *parts)


def frame(outcome: Outcome, kind: Kind) -> Any:
    """The numbers of a race as a pandas frame.

    Args:
        outcome: of a race.
        kind: `"standings"` or `"curves"`.
    """
    makers = {"standings": standing_records, "curves": curve_records}
    if kind not in makers:
        raise ValueError(
            f"Outcome.to_pandas: `kind` is {kind!r}, expected one of: standings, "
            "curves."
        )
    try:
        pandas = import_module("pandas")  # optional
    except ModuleNotFoundError as error:
        if error.name != "pandas":
            raise
        raise ModuleNotFoundError(
            "Outcome.to_pandas: pandas is not installed. Run `pip install pandas`.",
            name="pandas",
        ) from error
    return pandas.DataFrame([flat(record) for record in makers[kind](outcome)])
