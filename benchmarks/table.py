"""Numbers and tables as text, readable in a terminal and valid Markdown."""

from collections.abc import Sequence

from .rows import Row

_UNITS = {
    "s": ((1, "s"), (1e-3, "ms"), (1e-6, "us")),
    "B": ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1, "B")),
    "B/s": ((1e12, "TB/s"), (1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s"), (1, "B/s")),
    "nats": ((1, "nats"),),
    "bits": ((1, "bits"),),
}
# Columns that contain words.
WORDS = {"run", "tree", "optimizer", "quantity", "against", "what", "streams"}
WORDS |= {"library", "worst case", "verdict", "notes", "note"}


def amount(x: float, unit: str) -> str:
    """Three digits, in the largest unit that gives at least 1."""
    sizes = _UNITS[unit]
    size, name = next((s for s in sizes if x >= s[0]), sizes[-1])
    before = len(str(int(x / size)))
    digits = 0 if name == "B" else max(0, 3 - before)
    return f"{x / size:.{digits}f} {name}"


def times(ratio: float) -> str:
    """A ratio with two digits, or three if it is near 1."""
    if ratio == float("inf"):
        return "all"
    return f"{ratio:.{2 if ratio < 2 else 1 if ratio < 10 else 0}f}"


def spread(row: Row, against: str) -> str:
    """The middle half of the rounds; empty if there was only one."""
    if min(row.rounds, len(row.times[against])) == 1:
        return ""
    low, high = row.spread(against)
    return f"{times(low)} to {times(high)}"


def markdown(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """A table with aligned columns: words on the left, numbers on the right."""
    widths = [max(map(len, column)) for column in zip(head, *lines, strict=True)]
    left = [name in WORDS for name in head]
    rule = [
        "-" * (n - 1) + "-:"[not words] for n, words in zip(widths, left, strict=True)
    ]
    return "\n".join(
        f"| {' | '.join(map(_aligned, line, widths, left))} |"
        for line in (head, rule, *lines)
    )


def _aligned(cell: str, width: int, left: bool) -> str:
    return cell.ljust(width) if left else cell.rjust(width)
