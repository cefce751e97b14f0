"""The plot of a learning-rate range test."""

import numpy as np

from .._find_lr import RangeTest
from ._numbers import Number, rate
from ._picture import Picture
from ._plot import axes, Box, cut, PlotLayout, room, titled, TOP
from ._scales import fit, logarithmic, Scale
from ._svg import band, line, rule, series, text, width

_LAYOUT = PlotLayout(width=880.0, height=330.0, gutter=0.0)
_ABOVE = 0.25  # of the height of the curve: how much of the divergence is shown


def range_test_picture(test: RangeTest) -> Picture:
    """Plot the loss against the learning rate, with the two rates found.

    Args:
        test: the result of `find_lr`.
    """
    known = test.smooth[np.isfinite(test.smooth)]
    top = known.max() + _ABOVE * (np.ptp(known) or abs(known.max()) or 1.0)
    y = fit([*known, top], TOP + _LAYOUT.height, TOP, log=True)
    up = y.ticks(7)
    box = room(_LAYOUT, up, 1)
    x = logarithmic(test.rates[[0, -1]].tolist(), box.left, box.right)
    frame = axes(
        box,
        [(x(at), name) for at, name in x.ticks(9)],
        [(y(at), name) for at, name in up],
        ("learning rate, log scale", titled("loss", y)),
    )
    xs = np.array([x(float(r)) for r in test.rates])
    least, most = (_pixels(f(test.losses, axis=0), y) for f in (np.min, np.max))
    runs = band(xs, least, most) if len(test.losses) > 1 else ""
    body = frame + cut(box, series(0, runs, line(xs, _pixels(test.smooth, y))))
    body += _label(box, x, test.suggested, "steepest descent", TOP + 14)
    body += _label(box, x, test.diverges, "diverges", TOP + 30)
    title = f"{test.optimizer} on {test.problem}"
    return Picture(
        "find-lr", title, _in_words(test), _LAYOUT.width, box.bottom + 50, body
    )


def _in_words(test: RangeTest) -> str:
    """The result in words.

    Args:
        test: the result of `find_lr`.
    """
    low, high = (rate(float(r)) for r in test.rates[[0, -1]])
    if test.suggested is not None:
        falls = f"The loss falls fastest at {rate(test.suggested)}."
    elif test.fall:
        falls = (
            f"The loss does not clearly fall between {low} and {high}: a fall of "
            f"{test.fall:.2g} is within its noise. Use more steps or seeds."
        )
    else:
        falls = f"The loss never falls between {low} and {high}."
    rises = (
        f"It does not diverge up to {high}."
        if test.diverges is None
        else f"It diverges from {rate(test.diverges)} on."
    )
    return f"{falls} {rises}"


def _pixels(values: np.ndarray, y: Scale) -> np.ndarray:
    """NaN where a value is not finite."""
    return np.array([y(float(v)) if np.isfinite(v) else np.nan for v in values])


def _label(box: Box, x: Scale, at: Number | None, what: str, height: Number) -> str:
    """A vertical line with its name beside it."""
    if at is None:
        return ""
    name, px = f"{what} {rate(at)}", x(at)
    right = px + 8 + width(name, 12) < box.right
    where = {"text_anchor": "start" if right else "end", "class_": "soft halo"}
    beside = text(name, px + (6 if right else -6), height, **where)
    return rule(px, box.top, px, box.bottom, "target") + beside
