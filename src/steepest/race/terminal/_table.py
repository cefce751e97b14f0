"""The results of a race on the terminal: table, verdict and notes."""

from collections.abc import Iterator

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from .._outcome import Outcome
from ..report import columns, notes, recommendation, verdict

# Columns that a narrow terminal leaves out, in this order.
_LEAST = (
    "state bytes/param",
    "stopped rates",
    "diverged runs",
    "good rates",
    "time per step",
    "steps to target",
    "time to target",
    "vs. the best",
)
_WORDS = "optimizer", "vs. the best"
_GAP = 3  # between columns
_FOLDED = 12  # minimum width of a column of words

Texts = list[list[str]]  # headers, then one row per optimizer


def print_outcome(console: Console, outcome: Outcome) -> None:
    """Print the problem, the machine, the table, the verdict and the notes.

    Args:
        console: where to print.
        outcome: of a race.
    """
    about = f"  {outcome.about}" if outcome.about else ""
    console.print(Text.assemble((outcome.problem, "bold"), about))
    console.print(Text(outcome.machine, "dim"))
    console.print()
    if outcome.sweeps:
        console.print(outcome_table(outcome, console.width, console.is_terminal))
        console.print()
    _print_advice(console, outcome)
    for note in notes(outcome):
        console.print(Text(note, "dim"))


def _print_advice(console: Console, outcome: Outcome) -> None:
    """Print which optimizer to use, and the code to copy on lines of their own."""
    console.print(Text(verdict(outcome)))
    advice = recommendation(outcome)
    for line in [] if advice is None else str(advice).splitlines():
        code = line.startswith(" ")
        # A copied line must not be broken, even if it is wider than the terminal.
        console.print(Text(line, "cyan" if code else "bold"), soft_wrap=code)


def outcome_table(outcome: Outcome, width: int, line: bool = True) -> Table:
    """The table of a race. To fit, words are folded or columns left out.

    Args:
        outcome: of a race.
        width: maximum width. Numbers are never truncated.
        line: whether to draw a line under the headers.
    """
    headers, rows = columns(outcome)
    whole = [headers, *rows]
    for texts in (whole, [_in_two_lines(headers), *rows]):
        if _width(headers, texts) <= width:
            return _drawn(headers, texts, line)
    folded = [
        (names, [_in_two_lines(names), *map(_in_more_lines, rows)])
        for names, *rows in _fewer(whole)
    ]
    fitting = [pair for pair in folded if _width(*pair, _FOLDED) <= width]
    return _drawn(*(fitting or folded[-1:])[0], line)


def _fewer(texts: Texts) -> Iterator[Texts]:
    """All columns, then ever fewer: the least important ones go first."""
    yield texts
    for header in _LEAST:
        if header in texts[0]:
            k = texts[0].index(header)
            texts = [[*row[:k], *row[k + 1 :]] for row in texts]
            yield texts


def _in_two_lines(headers: list[str]) -> list[str]:
    """Break each header near its middle; a single word goes on the second line."""

    def broken(header: str) -> str:
        spaces = [k for k, letter in enumerate(header) if letter == " "]
        if not spaces:
            return "\n" + header
        k = min(spaces, key=lambda k: max(k, len(header) - k))
        return f"{header[:k]}\n{header[k + 1 :]}"

    return [broken(header) for header in headers]


def _in_more_lines(row: list[str]) -> list[str]:
    """Break the last cell before its p-value."""
    return [*row[:-1], row[-1].replace(", p", "\np")]


def _width(names: list[str], texts: Texts, most: int | None = None) -> int:
    """Total width of the columns, with columns of words at most `most` wide."""
    total = _GAP * (len(names) - 1)
    for name, *column in zip(names, *texts, strict=True):
        widest = max(cell_len(line) for text in column for line in text.split("\n"))
        total += min(widest, most) if most and name in _WORDS else widest
    return total


def _drawn(names: list[str], texts: Texts, line: bool) -> Table:
    table = Table(
        box=box.SIMPLE_HEAD if line else None,
        show_edge=False,
        pad_edge=False,
        padding=(0, 1) if line else (0, _GAP, 0, 0),
    )
    for name, header in zip(names, texts[0], strict=True):
        words = name in _WORDS
        table.add_column(
            Text(header),
            justify="left" if words else "right",
            no_wrap=not words,
            overflow="fold",
        )
    for k, row in enumerate(texts[1:]):
        table.add_row(*map(Text, row), style="bold green" if k == 0 else None)
    return table
