"""The results of a suite as tables, readable in a terminal and valid Markdown."""

from collections.abc import Sequence
from math import inf, isfinite, log

from ..report._numbers import chance, NOTHING, rate, seconds
from ._bars import Judged, judged
from ._statistics import Line, Paired, Table

_ARROWS = {"lowest": "↓", "highest": "↑", "": ""}
_NUMBERS = ("bits", "vs.", "steps", "time", "state", "diverged", "sigma", "decay")


def results_table(table: Table) -> str:
    """A row for each arm that counts, best first.

    Args:
        table: of a suite.
    """
    head = (
        "optimizer",
        "learning rate",
        "decay",
        "bits per byte",
        "vs. adamw (nats)",
        "vs. muon (nats)",
        "steps of adamw",
        "time per step (max)",
        "state bytes/param",
        "diverged",
    )
    return markdown(head, [_row(line) for line in table.lines])


def bars_table(table: Table) -> str:
    """A row for each bar, with its verdict.

    Args:
        table: of a suite.
    """
    rows = [(_bold(bar), bar.claim, bar.measured or NOTHING) for bar in judged(table)]
    return markdown(("verdict", "bar", "measured"), rows)


def counted(table: Table) -> str:
    """How many bars passed, as a sentence.

    Args:
        table: of a suite.
    """
    verdicts = [bar.verdict for bar in judged(table)]
    some = [verdicts.count(kind) for kind in ("pass", "FAIL", "not measured")]
    return "Bars passed: {}, failed: {}, not measured: {}.".format(*some)


def absent(table: Table) -> list[str]:
    """The arms without a result, each with the reason.

    Args:
        table: of a suite.
    """
    void = [f"{name} is void: {why}" for name, why in table.void]
    return [*void, *(f"{name} is missing: {why}" for name, why in table.skipped)]


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table with aligned columns: words on the left, numbers on the right.

    Args:
        head: titles of the columns.
        rows: the cells.
    """
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    right = [title.startswith(_NUMBERS) for title in head]
    dashes = ["-" * (n - 1) + "-:"[r] for n, r in zip(widths, right, strict=True)]
    lines = [
        " | ".join(
            cell.rjust(n) if r else cell.ljust(n)
            for cell, n, r in zip(cells, widths, right, strict=True)
        )
        for cells in (head, dashes, *rows)
    ]
    return "\n".join(f"| {line} |" for line in lines)


def _row(line: Line) -> tuple[str, ...]:
    tuned = line.entry.tuned
    return (
        line.name,
        NOTHING
        if tuned is None
        else f"{rate(tuned.rate)} {_ARROWS[line.side]}".strip(),
        _decay(line),
        _bits(line),
        _compared(line.adamw),
        _compared(line.muon),
        NOTHING if line.steps is None else f"{line.steps:.2f}x",
        _times(line),
        f"{line.bytes_per_param:.3g}",
        f"{line.diverged} of {line.runs}",
    )


def _decay(line: Line) -> str:
    """The weight decay, with an arrow if it is the smallest or the largest tried."""
    tuned, edge = line.entry.tuned, line.entry.edge
    if tuned is None or not tuned.decay:
        return NOTHING
    return f"{rate(tuned.decay)} {_ARROWS[edge]}".strip()


def _times(line: Line) -> str:
    return f"{seconds(line.step_seconds)} ({seconds(line.slowest)})"


def _bits(line: Line) -> str:
    if line.mean == inf:
        return "diverged"
    spread = f" ± {line.sigma / log(2):.4f}" if isfinite(line.sigma) else ""
    return f"{line.mean / log(2):.4f}{spread}"


def _compared(test: Paired | None) -> str:
    """A difference and its standard error; with the p-value if it was planned."""
    if test is None:
        return NOTHING
    p = "" if test.corrected is None else f", {chance(test.corrected)}"
    return f"{test}{p}"


def _bold(bar: Judged) -> str:
    return f"**{bar.verdict}**" if bar.verdict == "FAIL" else bar.verdict
