"""The parts that all plots share: layout, plot area and axes."""

from collections.abc import Sequence
from dataclasses import dataclass

from .._outcome import Outcome
from .._standings import Standing, standings
from ._markup import coordinate, tag
from ._numbers import Number
from ._scales import Scale, Tick
from ._svg import moving, rule, text, width

ROW = 18.0  # height of a line of text, in pixels
TOP = 34.0  # top of the plot area, below the title of the vertical axis


@dataclass(frozen=True)
class PlotLayout:
    """The size of a picture, and where the names go.

    Attributes:
        width: of the picture.
        height: of the plot area.
        gutter: width left for names on the right; 0 puts them below the plot.
    """

    width: Number
    height: Number
    gutter: Number


WIDE = PlotLayout(1040.0, 380.0, 260.0)
NARROW = PlotLayout(380.0, 270.0, 0.0)


@dataclass(frozen=True)
class Box:
    """The plot area of a picture, in pixels."""

    layout: PlotLayout
    left: Number
    right: Number
    top: Number
    bottom: Number


def room(layout: PlotLayout, ticks: Sequence[Tick], names: int) -> Box:
    """The plot area: high enough for all names, with room for the tick labels.

    Args:
        layout: of the picture.
        ticks: of the vertical axis.
        names: number of names beside the plot.
    """
    left = max([width(name, 12) for _, name in ticks], default=0.0) + 12
    top, height = TOP, tall(layout, names)
    right = layout.width - (layout.gutter or 20)
    return Box(layout, left, right, top, top + height)


def tall(layout: PlotLayout, names: int) -> Number:
    """The height of the plot area.

    Args:
        layout: of the picture.
        names: number of names beside the plot.
    """
    return max(layout.height, ROW * names) if layout.gutter else layout.height


def keyed(outcome: Outcome) -> list[tuple[int, Standing]]:
    """Every row of the table, with the key that gives it its colour.

    Args:
        outcome: of a race.
    """
    number_of = {id(sweep): key for key, sweep in enumerate(outcome.sweeps)}
    return [(number_of[id(row.sweep)], row) for row in standings(outcome)]


def axes(
    box: Box,
    across: Sequence[tuple[Number, str]],
    up: Sequence[tuple[Number, str]],
    titles: tuple[str, str],
) -> str:
    """Draw grid lines, tick labels and axis titles.

    Args:
        box: the plot area.
        across: pixels and labels of the horizontal axis.
        up: pixels and labels of the vertical axis.
        titles: of the horizontal and the vertical axis.
    """
    parts = [text(titles[1], 0, 15, class_="axis")]
    for y, name in up:
        parts.append(rule(box.left, y, box.right, y, "grid"))
        where = {"text_anchor": "end", "class_": "soft up"}
        parts.append(text(name, box.left - 8, y + 4, **where))
    for x, name in across:
        parts.append(rule(x, box.bottom, x, box.bottom + 5, "base"))
        where = {"text_anchor": "middle", "class_": "soft across"}
        parts.append(text(name, x, box.bottom + 19, **where))
    parts.append(rule(box.left, box.bottom, box.right, box.bottom, "base"))
    middle = (box.left + box.right) / 2
    where = {"text_anchor": "middle", "class_": "axis"}
    parts.append(text(titles[0], middle, box.bottom + 40, **where))
    return "".join(parts)


def target(value: Number | None, box: Box, y: Scale) -> str:
    """Draw the target of the race; nothing without one, or if it is off the axis.

    Args:
        value: the target.
        box: the plot area.
        y: the vertical axis.
    """
    if value is None or not y.low <= value <= y.high:
        return ""
    height = y(value)
    where = {"text_anchor": "end", "class_": "soft halo"}
    name = text("target", box.right - 4, height - 5, **where)
    line = rule(box.left, height, box.right, height, "target")
    return moving(line + name, None, height)


def titled(what: str, scale: Scale) -> str:
    """The title of an axis.

    Args:
        what: the axis shows.
        scale: of the axis.
    """
    return f"{what}, log scale" if scale.log else what


def apart(ticks: Sequence[tuple[Number, str]]) -> list[tuple[Number, str]]:
    """Drop tick labels of the horizontal axis that would overlap earlier ones.

    Args:
        ticks: pixels and labels, most important first.
    """
    kept: list[tuple[Number, str]] = []
    for x, name in ticks:
        wide = width(name, 12)
        if all(abs(x - y) > (wide + width(n, 12)) / 2 + 8 for y, n in kept):
            kept.append((x, name))
    return sorted(kept)


def cut(box: Box, *inside: str) -> str:
    """Clip markup to the plot area. The script zooms by changing the `viewBox`.

    Args:
        box: the plot area.
        inside: the markup.
    """
    wide, high = box.right - box.left, box.bottom - box.top
    corner = " ".join(coordinate(v) for v in (box.left, box.top, wide, high))
    size = {"x": box.left, "y": box.top, "width": wide, "height": high}
    return tag("svg", *inside, viewBox=corner, **size)
