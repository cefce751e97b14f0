"""The picture of a suite: how far each arm is from AdamW, seed by seed."""

from math import isfinite

import numpy as np

from ..report._picture import Picture
from ..report._plot import axes, Box, PlotLayout, TOP
from ..report._scales import fit, Scale
from ..report._svg import mark, rule, series, text
from ._arms import ADAMW, ARMS
from ._statistics import Line, Table

_LAYOUT = PlotLayout(1040.0, 380.0, 190.0)
_ROW, _RIGHT = 30.0, 250.0
_KEYS = {arm.name: key for key, arm in enumerate(ARMS)}


def differences(table: Table, name: str) -> Picture:
    """Plot the differences of all arms from AdamW, best first.

    Args:
        table: of a suite.
        name: of the file, without its suffix.
    """
    adamw = table.line(ADAMW)
    lines = [line for line in table.lines if isfinite(line.mean)] if adamw else []
    top = TOP - 20
    bottom = top + _ROW * max(len(lines), 2)
    box = Box(_LAYOUT, _LAYOUT.gutter, _LAYOUT.width - _RIGHT, top, bottom)
    base = adamw.losses if adamw else ()
    # Some have more seeds than others: those that both have.
    less = lambda line: [x - y for x, y in zip(line.losses, base, strict=False)]
    seeds = {line.name: np.array(less(line)) for line in lines}
    values = [float(v) for one in seeds.values() for v in one]
    x = fit(values, box.left + 16, box.right - 16)
    across = [(x(v), label) for v, label in x.ticks(7)]
    parts = [rule(at, box.top, at, box.bottom, "grid") for at, _ in across]
    title = "nats per byte, less AdamW's of the same seed"
    parts.append(axes(box, across, [], (title, "")))
    if x.low <= 0 <= x.high:
        parts.append(rule(x(0), box.top, x(0), box.bottom, "target"))
    for k, line in enumerate(lines):
        y = top + _ROW * (k + 0.5)
        first = " first" if not k else ""
        parts.append(text(line.name, 0, y + 4.5, class_=f"name halo{first}"))
        parts.append(text(_says(line), box.right + 16, y + 4.5, class_="soft halo"))
        parts.append(series(_KEYS[line.name], _row(line, seeds[line.name], y, x)))
    return Picture(
        name,
        "Difference from AdamW",
        f"The final loss of {len(lines)} optimizers, less AdamW's of the same seed: "
        "the mean, its standard error and every seed. The numbers are in the table.",
        _LAYOUT.width,
        bottom + 50,
        "".join(parts),
    )


def _row(line: Line, seeds: np.ndarray, y: float, x: Scale) -> str:
    """The mean and its standard error, with each seed below."""
    mean = float(seeds.mean())
    error = line.adamw.error if line.adamw else 0.0
    a, b = x(mean - error), x(mean + error)
    bar = [rule(a, y - 3, b, y - 3, "bar")] if a != b else []
    dots = [mark(0, x(float(v)), y + 6, 2.2, "dot") for v in seeds]
    tip = f"{line.name}\n{mean:+.4f} ± {error:.4f} nats per byte"
    return "".join([*bar, *dots, mark(_KEYS[line.name], x(mean), y - 3, 5.0, tip=tip)])


def _says(line: Line) -> str:
    """The difference in words."""
    if line.adamw is None:
        return "the reference"
    saved = "" if line.steps is None else f", {line.steps:.2f}x steps"
    return f"{line.adamw}{saved}"
