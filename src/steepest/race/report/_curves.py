"""The plots of the training loss against steps or seconds."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from .._outcome import Outcome
from .._standings import Standing
from ._labels import Label, names
from ._numbers import at_rate, count, Number, number, seconds
from ._picture import Picture
from ._plot import axes, Box, cut, keyed, PlotLayout, room, tall, titled, TOP
from ._scales import fit, Scale
from ._svg import band, cross, line, mark, series

Along = Literal["steps", "seconds"]


@dataclass(frozen=True)
class _Curve:
    """The loss of an optimizer at its best learning rate, while it is finite."""

    key: int
    row: Standing
    at: np.ndarray  # steps or seconds
    loss: np.ndarray  # (seeds, times)
    whole: bool  # whether it never diverged

    @property
    def tip(self) -> str:
        sweep, mean = self.row.sweep, self.loss.mean(axis=0)
        head = f"{self.row.name}{at_rate(self.row.rate)}"
        if not len(mean):
            return f"{head}: diverged at once"
        last = len(mean) - 1
        steps, took = sweep.steps[last], sweep.seconds[last] / sweep.runs
        low, high = (number(float(f(self.loss[:, last]))) for f in (np.min, np.max))
        return (
            f"{head}\nloss {number(float(mean[last]))} ({low} to {high})\n"
            f"after {count(steps)} steps, {seconds(took)}"
            + ("" if self.whole else "\nthen it diverged")
        )


def curves(outcome: Outcome, layout: PlotLayout, along: Along) -> Picture:
    """Plot the loss of every optimizer at its best learning rate.

    The line is the mean over the seeds, the band the range over the seeds.

    Args:
        outcome: of a race.
        layout: its size.
        along: the horizontal axis.
    """
    lines = [_curve(key, row, along) for key, row in keyed(outcome)]
    # A diverging loss may become huge first: it must not make all others flat.
    drawn = [c for c in lines if c.whole] or lines
    bottom = TOP + tall(layout, len(lines))
    values = (v for c in drawn for v in c.loss.flat)
    y = fit(values, bottom, TOP, log=True)
    up = y.ticks(7 if layout.gutter else 6)
    box = room(layout, up, len(lines))
    x = _across(lines, box)
    across = x.ticks(8 if layout.gutter else 5)
    titles = titled(_AXES[along], x), titled("training loss", y)
    frame = axes(
        box, [(x(v), t) for v, t in across], [(y(v), t) for v, t in up], titles
    )
    # The best one is drawn last, on top.
    paths = [_lines(c, x, y) for c in reversed(lines)]
    ends = [_end(c, x, y) for c in reversed(lines)]
    legend, height = names(box, [_label(c, x, y, box) for c in lines])
    return Picture(
        f"loss-by-{along}",
        f"Loss against {along}",
        f"The training loss of {len(lines)} optimizers, each at its best learning "
        "rate. The numbers are in the table.",
        layout.width,
        height,
        frame + cut(box, *paths) + "".join(ends) + legend,
    )


def _across(lines: list[_Curve], box: Box) -> Scale:
    """The horizontal axis; logarithmic if some curves are much shorter than others."""
    ends = [float(c.at[-1]) for c in lines if len(c.at) > 1 and c.whole]
    last = max((float(c.at[-1]) for c in lines if len(c.at)), default=0.0)
    begin = min((float(v) for c in lines for v in c.at if v > 0), default=last)
    if ends and last > _QUICK * min(ends) and last > begin:
        return Scale(begin, last, box.left, box.right, log=True)
    return Scale(0.0, last or 1.0, box.left, box.right)


_QUICK = 12  # times shorter: on a linear axis such curves look vertical
_AXES = {"steps": "steps", "seconds": "seconds per run"}


def _curve(key: int, row: Standing, along: Along) -> _Curve:
    sweep = row.sweep
    loss = np.asarray(sweep.loss[row.place], np.float64)
    good = np.asarray(np.isfinite(loss).all(axis=0))
    stop = len(good) if good.all() else int(good.argmin())
    at = np.asarray(sweep.steps if along == "steps" else sweep.seconds, np.float64)
    at = at / (1 if along == "steps" else sweep.runs)
    whole = stop == len(good) and not np.isnan(row.metric)
    return _Curve(key, row, at[:stop], loss[:, :stop], whole)


def _lines(curve: _Curve, x: Scale, y: Scale) -> str:
    # A logarithmic axis cannot show 0.
    xs = np.array([np.nan if x.log and not v else x(v) for v in curve.at])
    high = lambda values: np.array([y(v) for v in values])
    low, mean, top = (high(f(curve.loss, axis=0)) for f in (np.min, np.mean, np.max))
    several = len(curve.loss) > 1
    return series(curve.key, band(xs, low, top) if several else "", line(xs, mean))


def _end(curve: _Curve, x: Scale, y: Scale) -> str:
    if not len(curve.at):
        return ""
    px, py = x(float(curve.at[-1])), _inside(curve, y)
    if curve.whole:
        return series(curve.key, mark(curve.key, px, py, 4.5, tip=curve.tip))
    return series(curve.key, cross(px, py, 5, tip=curve.tip))


def _inside(curve: _Curve, y: Scale) -> Number:
    """The height at which a line ends or leaves the plot area."""
    high, low = sorted((y.start, y.end))
    return min(max(y(float(curve.loss[:, -1].mean())), high), low)


def _label(curve: _Curve, x: Scale, y: Scale, box: Box) -> Label:
    gone = not len(curve.at)
    return Label(
        curve.key,
        curve.row.name,
        box.top if gone else _inside(curve, y),
        not gone and x(float(curve.at[-1])) > box.right - 2,
        curve.row.verdict == "best",
    )
