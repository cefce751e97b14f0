"""The plots of the loss or the metric against steps or seconds."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from .._outcome import Outcome
from .._standings import Standing
from ._labels import Label, names
from ._numbers import at_rate, count, Number, number, seconds
from ._picture import Hover, Picture, Points
from ._plot import axes, Box, cut, keyed, PlotLayout, room, tall, target, titled, TOP
from ._scales import fit, Scale
from ._svg import band, cross, line, mark, moving, series

Along = Literal["steps", "seconds"]
What = Literal["loss", "metric"]
_NEAR_ONE = 0.9  # from this best value on, a share is shown by its distance from 1


@dataclass(frozen=True)
class _Curve:
    """The values of an optimizer at its best learning rate, while they are finite."""

    key: int
    row: Standing
    at: np.ndarray  # steps or seconds
    loss: np.ndarray  # (seeds, times), or another value
    whole: bool  # whether it never diverged
    called: str  # the value

    @property
    def tip(self) -> str:
        sweep, mean = self.row.sweep, self.loss.mean(axis=0)
        head = f"{self.row.name}{at_rate(self.row.rate)}"
        if not len(mean):
            return f"{head}: diverged at once"
        last = len(mean) - 1
        steps, took = sweep.steps[last], float(sweep.run_seconds[last])
        low, high = (number(float(f(self.loss[:, last]))) for f in (np.min, np.max))
        return (
            f"{head}\n{self.called} {number(float(mean[last]))} ({low} to {high})\n"
            f"after {count(steps)} steps, {seconds(took)}"
            + ("" if self.whole else "\nthen it diverged")
        )


def curves(
    outcome: Outcome, layout: PlotLayout, along: Along, what: What = "loss"
) -> Picture:
    """Plot the loss or the metric of every optimizer at its best learning rate.

    The line is the mean over the seeds, the band the range over the seeds.

    Args:
        outcome: of a race.
        layout: its size.
        along: the horizontal axis.
        what: the vertical axis.
    """
    error, called = False, "training loss"
    if what == "metric":
        error = is_share(outcome)
        called = f"1 - {outcome.measure}" if error else outcome.measure
    lines = [_curve(key, row, along, called, error) for key, row in keyed(outcome)]
    # A diverging loss may become huge first: it must not make all others flat.
    drawn = [c for c in lines if c.whole] or lines
    bottom = TOP + tall(layout, len(lines))
    values = [float(v) for c in drawn for v in c.loss.flat]
    goal = _goal(outcome, error) if what == "metric" else None
    y = fit(values if goal is None else [*values, goal], bottom, TOP, log=True)
    up = y.ticks(7 if layout.gutter else 6)
    box = room(layout, up, len(lines))
    x = _across(lines, box)
    across = x.ticks(8 if layout.gutter else 5)
    titles = titled(_AXES[along], x), titled(called, y)
    frame = axes(
        box, [(x(v), t) for v, t in across], [(y(v), t) for v, t in up], titles
    )
    # The best one is drawn last, on top.
    paths = [_lines(c, x, y) for c in reversed(lines)]
    ends = [_end(c, x, y) for c in reversed(lines)]
    legend, height = names(box, [_label(c, x, y, box) for c in lines])
    title = "Loss" if what == "loss" else outcome.measure[:1].upper()
    title += "" if what == "loss" else outcome.measure[1:]
    return Picture(
        f"{what}-by-{along}",
        f"{title} against {along}",
        f"The {called} of {len(lines)} optimizers, each at its best learning "
        "rate. The numbers are in the table.",
        layout.width,
        height,
        frame + target(goal, box, y) + cut(box, *paths) + "".join(ends) + legend,
        Hover(x, y, [_points(c) for c in lines]),
    )


def is_share(outcome: Outcome) -> bool:
    """Whether to show the distance from 1: 0.99 is twice as good as 0.98.

    Args:
        outcome: of a race.
    """
    values = [v for s in outcome.sweeps for v in s.metric.flat if np.isfinite(v)]
    if outcome.better == "lower" or not values or min(values) < 0:
        return False
    return bool(_NEAR_ONE <= max(values) <= 1)


def _goal(outcome: Outcome, error: bool) -> float | None:
    return outcome.target if outcome.target is None or not error else 1 - outcome.target


def _points(curve: _Curve) -> Points:
    """The mean of a curve at every evaluation, for the tooltip."""
    pairs = zip(curve.at.tolist(), curve.loss.mean(axis=0).tolist(), strict=True)
    short = lambda v: float(f"{v:.4g}")
    return curve.key, curve.row.name, [(short(a), short(b)) for a, b in pairs]


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


def _curve(key: int, row: Standing, along: Along, called: str, error: bool) -> _Curve:
    sweep = row.sweep
    values = sweep.loss if called == "training loss" else sweep.metric
    loss = np.asarray(values[row.place], np.float64)
    loss = 1 - loss if error else loss
    good = np.asarray(np.isfinite(loss).all(axis=0))
    stop = len(good) if good.all() else int(good.argmin())
    at = np.asarray(sweep.steps if along == "steps" else sweep.run_seconds, np.float64)
    whole = stop == len(good) and not np.isnan(row.metric)
    return _Curve(key, row, at[:stop], loss[:, :stop], whole, called)


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
    sign = cross(px, py, 5, tip=curve.tip)
    if curve.whole:
        sign = mark(curve.key, px, py, 4.5, tip=curve.tip)
    return series(curve.key, moving(sign, px, py))


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
