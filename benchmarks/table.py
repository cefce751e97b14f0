"""Rows as text, in aligned columns."""

from collections.abc import Iterable, Sequence

from .rows import Bar, Row, Traffic

_UNITS = {
    "s": ((1, "s"), (1e-3, "ms"), (1e-6, "us")),
    "B": ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1, "B")),
}


def of_rows(rows: Iterable[Row]) -> str:
    """Every row, those where steepest is behind marked."""
    head = ["tree", "optimizer", "quantity", "steepest", "Optax", "ratio", "spread", ""]
    return _aligned([head, *(_cells(row) for row in rows)], left=(0, 1, 2, 7))


def of_traffic(rows: Iterable[Traffic]) -> str:
    """Bytes that must move over the seconds it took, beside a plain `a + b`."""
    head = [
        "optimizer",
        "must move",
        "steepest",
        "Optax",
        "a + b",
        "steepest / (a + b)",
    ]
    lines = [head]
    for row in rows:
        ours, theirs = row.moved / row.steepest, row.moved / row.optax
        plain = row.copied / row.copy
        rates = [f"{rate / 1e9:.1f} GB/s" for rate in (ours, theirs, plain)]
        moved = _quantity(row.moved, "B")
        lines.append([row.optimizer, moved, *rates, f"{ours / plain:.0%}"])
    return _aligned(lines, left=(0,))


def of_bars(bars: Iterable[Bar], rows: Sequence[Row]) -> str:
    """Each bar, beside the row it is about."""
    lines = [["tree", "optimizer", "quantity", "wanted", "found", "spread", ""]]
    for bar in bars:
        name = [bar.tree, bar.optimizer, bar.quantity]
        (row,) = (r for r in rows if [r.tree, r.optimizer, r.quantity] == name)
        found = [f"{row.ratio:.2f}", _spread(row), bar.verdict(row)]
        lines.append([*name, f"{bar.least:.2f}", *found])
    return _aligned(lines, left=(0, 1, 2, 6))


def _cells(row: Row) -> list[str]:
    ours, theirs = (_quantity(min(x), row.unit) for x in (row.steepest, row.optax))
    mark = "behind" if row.ratio < 1 else ""
    if mark and row.spread[1] >= 1:
        mark = "behind, within the spread"
    name = [row.tree, row.optimizer, row.quantity]
    return [*name, ours, theirs, f"{row.ratio:.2f}", _spread(row), mark]


def _spread(row: Row) -> str:
    if len(row.steepest) == 1:  # a count of bytes, or a single round
        return ""
    low, high = row.spread
    return f"{low:.2f} .. {high:.2f}"


def _quantity(x: float, unit: str) -> str:
    """Three digits or more, in the unit that leaves at least one before the point."""
    sizes = _UNITS[unit]
    size, name = next((s for s in sizes if x >= s[0]), sizes[-1])
    digits = 0 if size == 1 and unit == "B" else max(0, 2 - len(str(int(x / size))) + 1)
    return f"{x / size:.{digits}f} {name}"


def _aligned(lines: Sequence[Sequence[str]], left: Sequence[int]) -> str:
    """The columns in `left` flush left, the others flush right."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(
            f"{cell:{'<' if k in left else '>'}{width}}"
            for k, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )
