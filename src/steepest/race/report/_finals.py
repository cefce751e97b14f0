"""The plot of the final metrics, with every seed."""

from collections.abc import Sequence

import numpy as np

from .._outcome import Outcome
from .._standings import Standing
from ._columns import difference, final
from ._labels import LETTERS
from ._numbers import at_rate, Number, number
from ._picture import Picture
from ._plot import axes, Box, keyed, PlotLayout, titled, TOP
from ._scales import fit, Scale
from ._svg import cross, mark, rule, series, shortened, text, width

_FAR = 10  # times the median distance from the best: farther rows are off the axis


def finals(outcome: Outcome, layout: PlotLayout) -> Picture:
    """Plot the final metric of each optimizer at its best learning rate, best first.

    Args:
        outcome: of a race.
        layout: its size.
    """
    rows = keyed(outcome)
    wide, low = bool(layout.gutter), outcome.better == "lower"
    high, left, right = (36.0, layout.gutter, 224.0) if wide else (48.0, 6.0, 6.0)
    top = TOP - 20
    bottom = top + high * max(len(rows), 2)
    box = Box(layout, left, layout.width - right, top, bottom)
    values = _values([row for _, row in rows], low)
    x = fit(values, box.left + 16, box.right - 16, log=low)
    across = [(x(v), name) for v, name in x.ticks(7 if wide else 5)]
    parts = [rule(at, box.top, at, box.bottom, "grid") for at, _ in across]
    parts.append(axes(box, across, [], (titled(f"final {outcome.measure}", x), "")))
    if values:
        best = x(rows[0][1].metric)
        parts.append(rule(best, box.top, best, box.bottom, "target"))
    written = final(outcome)
    for k, (key, row) in enumerate(rows):
        y = top + high * (k + 0.5)
        tip = f"{row.name}{at_rate(row.rate)}\n{outcome.measure} {written(row)}"
        name = _words(row, y if wide else y - 10, box, wide)
        parts.append(series(key, name, legend=True))
        parts.append(series(key, _row(key, row, y if wide else y + 8, x, low, tip)))
    return Picture(
        "finals",
        f"Final {outcome.measure}",
        f"The final {outcome.measure} of {len(rows)} optimizers, best first, with the "
        "spread over the seeds. The numbers are in the table.",
        layout.width,
        bottom + 50,
        "".join(parts),
    )


def _values(rows: Sequence[Standing], low: bool) -> list[Number]:
    """The values that the axis covers: bad optimizers must not squeeze the others."""
    good = [row for row in rows if not np.isnan(row.metric)]
    means = np.array([row.metric for row in good])
    bent = np.log(means) if low and (means > 0).all() else means
    far = np.abs(bent - bent[:1])
    usual = np.median(far[1:]) if len(far) > 1 else 0.0
    kept = [row for row, f in zip(good, far, strict=True) if f <= _FAR * usual]
    return [v for row in kept for v in (*_seeds(row), *_reach(row, low))]


def _seeds(row: Standing) -> list[Number]:
    return row.ends.tolist()


def _reach(row: Standing, low: bool) -> tuple[float, float]:
    """The ends of the error bar: the spread, or the range if the axis may be log."""
    if low or np.isnan(row.spread):
        return min(_seeds(row)), max(_seeds(row))
    return row.metric - row.spread, row.metric + row.spread


def _row(key: int, row: Standing, y: Number, x: Scale, low: bool, tip: str) -> str:
    """The mean and the spread, with each seed below."""
    if np.isnan(row.metric):
        bad = x.end if low else x.start
        return cross(bad, y, 5, f"{row.name}\ndiverged")
    at = x(row.metric)
    if not x.start - 16 <= at <= x.end + 16:
        return _arrow(x, y, -1 if at < x.start else 1, number(row.metric, row.spread))
    a, b = (_kept(x(v), x) for v in _reach(row, low))
    parts = []
    if a != b:
        parts = [rule(a, y, b, y, "bar")]
        parts += [rule(end, y - 4, end, y + 4, "bar") for end in (a, b)]
    seeds = _seeds(row) if len(row.sweep.seeds) > 1 else []
    parts += [mark(0, _kept(x(v), x), y + 9, 2.6, "dot") for v in seeds]
    return "".join([*parts, mark(key, at, y, 5.5, tip=tip)])


def _arrow(x: Scale, y: Number, way: int, value: str) -> str:
    """An arrow to a value off the axis: to the left (-1) or to the right (1)."""
    end = x.start if way < 0 else x.end
    shaft = rule(end - 14 * way, y, end, y, "bar")
    head = [rule(end - 5 * way, y + s, end, y, "bar") for s in (-4, 4)]
    anchor = "start" if way < 0 else "end"
    where = {"text_anchor": anchor, "class_": "soft halo"}
    return "".join([shaft, *head, text(value, end - 20 * way, y + 4, **where)])


def _kept(x: Number, scale: Scale) -> Number:
    return min(max(x, scale.start - 12), scale.end + 12)


def _words(row: Standing, y: Number, box: Box, wide: bool) -> str:
    """The name, and the comparison with the best."""
    compared = difference(row)
    first = " first" if row.verdict == "best" else ""
    space = box.left if wide else box.layout.width - width(compared, 12)
    name = shortened(row.name, space - 14, LETTERS)
    end = {"text_anchor": None if wide else "end", "class_": "soft halo"}
    right = box.right + 16 if wide else box.layout.width
    return text(name, 0, y + 4.5, class_=f"name halo{first}") + text(
        compared, right, y + 4.5, **end
    )
