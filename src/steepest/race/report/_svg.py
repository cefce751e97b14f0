"""SVG lines, bands and markers; their colours are in `picture.css`."""

import math

import numpy as np

from ._markup import coordinate, tag, words
from ._numbers import Number

COLOURS = 8

_POINTS = 120  # of a line: more would not be visible


def text(what: str, x: Number, y: Number, **attributes: str | Number | None) -> str:
    """Text at a position.

    Args:
        what: the text.
        x: its start, unless `text_anchor` says otherwise.
        y: its baseline.
        attributes: of the tag.
    """
    return tag("text", words(what), x=x, y=y, **attributes)


def line(xs: np.ndarray, ys: np.ndarray) -> str:
    """A line through points, with gaps where one is not finite.

    Args:
        xs: from the left.
        ys: from the top.
    """
    path, down = [], False
    for x, y in zip(*_fewer(xs, ys), strict=True):
        if math.isfinite(x) and math.isfinite(y):
            path.append(f"{'L' if down else 'M'}{coordinate(x)} {coordinate(y)}")
        down = math.isfinite(x) and math.isfinite(y)
    return tag("path", class_="curve", d="".join(path))


def band(xs: np.ndarray, lows: np.ndarray, highs: np.ndarray) -> str:
    """The area between two lines, with gaps where one is not finite.

    Args:
        xs: from the left.
        lows: from the top.
        highs: from the top.
    """
    xs, lows, highs = _fewer(xs, lows, highs)
    good = np.isfinite(xs + lows + highs)
    areas = []
    for part in np.split(np.arange(len(xs)), np.flatnonzero(np.diff(good)) + 1):
        if len(part) > 1 and good[part[0]]:
            across = np.concatenate([xs[part], xs[part[::-1]]])
            around = np.concatenate([lows[part], highs[part[::-1]]])
            areas.append(_closed(across, around))
    return tag("path", class_="band", d="".join(areas)) if areas else ""


def rule(
    x1: Number, y1: Number, x2: Number, y2: Number, class_: str, tip: str = ""
) -> str:
    """A straight line.

    Args:
        x1: its start, from the left.
        y1: its start, from the top.
        x2: its end, from the left.
        y2: its end, from the top.
        class_: CSS class.
        tip: the tooltip.
    """
    d = f"M{coordinate(x1)} {coordinate(y1)}L{coordinate(x2)} {coordinate(y2)}"
    return tag("path", _tip(tip), class_=class_, d=d)


def mark(
    kind: int,
    x: Number,
    y: Number,
    size: Number = 4.0,
    class_: str = "mark",
    tip: str = "",
) -> str:
    """A marker. Its shape distinguishes lines without relying on colour.

    Args:
        kind: the shape; the shapes repeat.
        x: its centre, from the left.
        y: its centre, from the top.
        size: about half its width.
        class_: CSS class.
        tip: the tooltip.
    """
    kind = (kind + kind // COLOURS) % COLOURS
    if not kind:
        return tag("circle", _tip(tip), class_=class_, cx=x, cy=y, r=size)
    corners = _SHAPES[kind - 1]
    shape = _closed(x + size * corners[:, 0], y + size * corners[:, 1])
    return tag("path", _tip(tip), class_=class_, d=shape)


def cross(x: Number, y: Number, size: Number = 4.0, tip: str = "") -> str:
    """The marker of a diverged run.

    Args:
        x: its centre, from the left.
        y: its centre, from the top.
        size: half its width.
        tip: the tooltip.
    """
    a, b, c, d = (coordinate(v) for v in (x - size, x + size, y - size, y + size))
    return tag("path", _tip(tip), class_="cross", d=f"M{a} {c}L{b} {d}M{a} {d}L{b} {c}")


def series(key: int, *inside: str, legend: bool = False) -> str:
    """Group the markup of one optimizer, for its colour, highlighting and hiding.

    Args:
        key: the number of the optimizer.
        inside: markup.
        legend: whether it is the name of the optimizer, which stays if it is hidden.
    """
    classes = f"s s{key % COLOURS} dash{key // 4 % 3}{' legend' if legend else ''}"
    return tag("g", *inside, class_=classes, data_s=str(key))


def moving(inside: str, x: Number | None, y: Number) -> str:
    """Markup that the script moves when the plot is zoomed, without stretching it.

    Args:
        inside: markup.
        x: its place, from the left; `None` if it spans the plot.
        y: its place, from the top.
    """
    return tag("g", inside, data_x=x, data_y=y)


def shortened(name: str, room: Number, size: Number) -> str:
    """Shorten a name to fit by cutting out its middle.

    Similar names usually differ at the end, so the end is kept.

    Args:
        name: the name.
        room: available width, in pixels.
        size: font size, in pixels.
    """
    most = int(room / width("n", size))
    if len(name) <= most:
        return name
    head, tail = most // 2, max(most - most // 2 - 1, 1)
    return f"{name[:head]}…{name[-tail:]}"


def width(what: str, size: Number) -> Number:
    """Estimate the width of a text: the reader's font is unknown.

    Args:
        what: the text.
        size: font size, in pixels.
    """
    return 0.62 * size * len(what)


def _tip(tip: str) -> str:
    return tag("title", words(tip)) if tip else ""


def _closed(xs: np.ndarray, ys: np.ndarray) -> str:
    points = zip(xs.tolist(), ys.tolist(), strict=True)
    return "M" + "L".join(f"{coordinate(x)} {coordinate(y)}" for x, y in points) + "Z"


def _fewer(*arrays: np.ndarray) -> list[np.ndarray]:
    """Subsample all arrays at the same points."""
    many = len(arrays[0])
    if many <= _POINTS:
        return [np.asarray(a) for a in arrays]
    kept = np.linspace(0, many - 1, _POINTS).round().astype(int)
    return [np.asarray(a)[kept] for a in arrays]


def _polygon(corners: int, turn: Number, size: Number = 1.0) -> np.ndarray:
    angles = math.tau * (np.arange(corners) / corners + turn)
    return size * np.stack([np.sin(angles), -np.cos(angles)], axis=1)


def _star(points: int, depth: Number) -> np.ndarray:
    outer, inner = _polygon(points, 0, 1.45), _polygon(points, 0.5 / points, depth)
    return np.stack([outer, inner], axis=1).reshape(-1, 2)


_SHAPES = [  # besides a circle
    _polygon(4, 1 / 8, 1.2),  # a square
    _polygon(3, 0, 1.3),
    _polygon(4, 0, 1.3),
    _polygon(3, 1 / 2, 1.3),
    _star(4, 0.65),
    _polygon(6, 0, 1.1),
    _star(5, 0.65),
]
