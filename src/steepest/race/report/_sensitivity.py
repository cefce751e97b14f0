"""The learning-rate plot: the final metric against the learning rate."""

from collections.abc import Sequence

import numpy as np

from .._outcome import Outcome
from .._standings import Standing
from ._labels import Label, names
from ._markup import tag
from ._numbers import count, Number, number, rate
from ._picture import Picture
from ._plot import (
    apart,
    axes,
    Box,
    cut,
    keyed,
    PlotLayout,
    room,
    tall,
    target,
    titled,
    TOP,
)
from ._scales import fit, logarithmic, Scale
from ._svg import band, cross, line, mark, rule, series, text

_LANE, _ROW = 90.0, 10.0  # maximum heights of the lane of crosses and of a row in it


def sensitivity(outcome: Outcome, layout: PlotLayout) -> Picture:
    """Plot the final metric against the learning rate, one line for each optimizer.

    Diverged runs are crosses in a lane at the bad end of the vertical axis, and
    learning rates that halving has stopped are dashes there. The axis ends at the
    initial metric: lines of runs that got worse than that leave the plot.

    Args:
        outcome: of a race.
        layout: its size.
    """
    rows = keyed(outcome)
    gone = sorted((key, row) for key, row in rows if row.diverged or row.stopped)
    lost = "no result" if outcome.halving else "diverged"
    lane = min(max(_ROW * len(gone) + 8, 30), _LANE) if gone else 0.0
    low = outcome.better == "lower"
    bottom = TOP + max(tall(layout, len(rows)), 160 + lane)
    # The lane is at the bad end: at the top if lower is better.
    y = fit(
        _shown(rows, low),
        bottom if low else bottom - lane,
        TOP + lane if low else TOP,
        log=low,
    )
    up = y.ticks(7 if layout.gutter else 6)
    left = room(layout, [*up, (0.0, lost)] if gone else up, len(rows))
    box = Box(layout, left.left, left.right, TOP, bottom)
    tried = sorted({r for _, row in rows for r in row.sweep.rates if r is not None})
    x = logarithmic(tried, box.left + 8, box.right - 8)
    titles = "learning rate, log scale", titled(f"final {outcome.measure}", y)
    parts = [
        axes(box, _rates(tried, x), [(y(v), name) for v, name in up], titles),
        target(outcome.target, box, y),
        _lane(gone, lost, box, lane, low, x),
    ]
    for key, row in reversed(rows):
        parts.append(cut(box, _line(key, row, x, y, box)))
        parts.append(_marks(key, row, x, y, outcome.measure))
    labels = [
        Label(key, row.name, _height(row, y, low), False, row.verdict == "best")
        for key, row in rows
    ]
    legend, height = names(box, labels)
    return Picture(
        "learning-rates",
        "Learning-rate sensitivity",
        f"The final {outcome.measure} of {len(rows)} optimizers against the learning "
        "rate, with crosses where runs diverged.",
        layout.width,
        height,
        "".join(parts) + legend,
    )


def _shown(rows: Sequence[tuple[int, Standing]], low: bool) -> list[float]:
    """The final metrics that are no worse than at the start, and all best ones."""
    begin = [float(row.sweep.metric[..., 0].mean()) for _, row in rows]
    known = [v for v in (*begin, *(row.metric for _, row in rows)) if np.isfinite(v)]
    ends = [float(v) for _, row in rows for v in row.sweep.ends.flat]
    if not known:
        return ends
    limit = max(known) if low else min(known)
    return [v for v in ends if (v <= limit if low else v >= limit)] or ends


def _rates(tried: Sequence[Number], x: Scale) -> list[tuple[Number, str]]:
    """Labels of the learning rates that fit; powers of ten take precedence."""
    odd = lambda r: abs(np.log10(r) - round(np.log10(r))) > 1e-6
    return apart([(x(r), rate(r)) for r in sorted(tried, key=odd)])


def _lane(
    gone: Sequence[tuple[int, Standing]],
    lost: str,
    box: Box,
    lane: Number,
    low: bool,
    x: Scale,
) -> str:
    """Crosses for diverged runs, a row per optimizer; small if only some diverged.

    Dashes for learning rates that were stopped.
    """
    if not gone:
        return ""
    top = box.top if low else box.bottom - lane
    area = {"x": box.left, "y": top, "width": box.right - box.left, "height": lane}
    where = {"text_anchor": "end", "class_": "soft up"}
    parts = [
        tag("rect", class_="lane", **area),
        text(lost, box.left - 8, top + lane / 2 + 4, **where),
    ]
    row_height = min(_ROW, (lane - 8) / len(gone))
    first = top + (lane - row_height * (len(gone) - 1)) / 2
    for k, (key, row) in enumerate(gone):
        y = first + row_height * k
        marks = [_lost(row, j, box, x, y) for j in range(len(row.sweep.rates))]
        parts.append(series(key, *marks))
    return "".join(parts)


def _lost(row: Standing, k: int, box: Box, x: Scale, y: Number) -> str:
    """The mark of a learning rate without a final metric; empty if it has one."""
    sweep, r = row.sweep, row.sweep.rates[k]
    diverged = sweep.diverged[k]
    px = (box.left + box.right) / 2 if r is None else x(r)
    if diverged.any():
        tip = f"{_at(row, r)}\n{diverged.sum()} of {len(diverged)} runs diverged"
        return cross(px, y, 3.4 if diverged.all() else 2.2, tip)
    if k in sweep.running:
        return ""
    value = number(float(sweep.latest[k].mean()))
    tip = f"{_at(row, r)}\nstopped at step {count(sweep.stopped[k])}, at {value}"
    return rule(px - 4, y, px + 4, y, "bar", tip)


def _line(key: int, row: Standing, x: Scale, y: Scale, box: Box) -> str:
    ends, rates = row.sweep.ends, [r for r in row.sweep.rates if r is not None]
    xs = np.array([x(r) for r in rates])
    if not rates:  # no learning rate: a horizontal line
        ends, xs = np.repeat(ends, 2, axis=0), np.array([box.left, box.right])
    order = xs.argsort()
    least, mean, most = (
        np.array([y(v) for v in f(ends, axis=1)])[order]
        for f in (np.min, np.mean, np.max)
    )
    good = np.flatnonzero(np.isfinite(mean))
    if len(good) == 1:  # a single point has no line and no band
        x0, y0, y1 = (float(v[good[0]]) for v in (xs[order], least, most))
        return series(key, rule(x0, y0, x0, y1, "bar"))
    area = band(xs[order], least, most) if ends.shape[1] > 1 else ""
    return series(key, area, line(xs[order], mean))


def _marks(key: int, row: Standing, x: Scale, y: Scale, measure: str) -> str:
    marks = []
    for k, (r, ends) in enumerate(zip(row.sweep.rates, row.sweep.ends, strict=True)):
        middle = float(ends.mean())
        if r is not None and min(y.low, y.high) <= middle <= max(y.low, y.high):
            spread = float(ends.std(ddof=1)) if len(ends) > 1 else None
            tip = f"{_at(row, r)}\n{measure} {number(middle, spread)}"
            kind = ("ring", 5.5) if k == row.place else ("mark", 3.0)
            marks.append(mark(key, x(r), y(middle), kind[1], kind[0], tip))
    return series(key, *marks)


def _at(row: Standing, r: Number | None) -> str:
    return row.name if r is None else f"{row.name} at {rate(r)}"


def _height(row: Standing, y: Scale, low: bool) -> Number:
    """The height of the name: at the best metric, or at the bad end."""
    bad = y.end if low else y.start
    return bad if np.isnan(row.metric) else y(row.metric)
