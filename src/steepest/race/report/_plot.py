"""What every picture has: a plot, and axes with round numbers."""

from collections.abc import Sequence
from dataclasses import dataclass

from .._outcome import Outcome
from .._standings import Standing, standings
from ._markup import coordinate, tag
from ._numbers import Number
from ._scales import Scale, Tick
from ._svg import rule, text, width

ROW = 18.0  # the height of a line of text
TOP = 34.0  # where a plot begins, below the title of its vertical axis


@dataclass(frozen=True)
class Layout:
    """How large a picture is, and where it has room for names.

    Attributes:
        width: of the picture.
        height: of the plot in it.
        gutter: the room for names right of the plot; 0 if they stand below.
    """

    width: Number
    height: Number
    gutter: Number


WIDE = Layout(1040.0, 380.0, 260.0)
NARROW = Layout(380.0, 270.0, 0.0)


@dataclass(frozen=True)
class Box:
    """The plot in a picture, in pixels."""

    layout: Layout
    left: Number
    right: Number
    top: Number
    bottom: Number


def room(layout: Layout, ticks: Sequence[Tick], names: int) -> Box:
    """A plot, high enough for all names, and as wide as the texts at its left allow.

    Args:
        layout: of the picture.
        ticks: those of the vertical axis.
        names: how many names stand beside it.
    """
    left = max([width(name, 12) for _, name in ticks], default=0.0) + 12
    top, height = TOP, tall(layout, names)
    right = layout.width - (layout.gutter or 20)
    return Box(layout, left, right, top, top + height)


def tall(layout: Layout, names: int) -> Number:
    """The height of the plot.

    Args:
        layout: of the picture.
        names: how many names stand beside it.
    """
    return max(layout.height, ROW * names) if layout.gutter else layout.height


def keyed(outcome: Outcome) -> list[tuple[int, Standing]]:
    """Every row of the table, with the number that gives it its colour.

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
    """Thin lines at round numbers, the numbers, and what they mean.

    Args:
        box: the plot.
        across: pixels and texts along the horizontal axis.
        up: pixels and texts along the vertical axis.
        titles: of the horizontal axis and of the vertical one.
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


def titled(what: str, scale: Scale) -> str:
    """The title of an axis.

    Args:
        what: it shows.
        scale: of the axis.
    """
    return f"{what}, log scale" if scale.log else what


def apart(ticks: Sequence[tuple[Number, str]]) -> list[tuple[Number, str]]:
    """Those texts along the horizontal axis that do not touch, the first ones first.

    Args:
        ticks: pixels and texts, the most wanted first.
    """
    kept: list[tuple[Number, str]] = []
    for x, name in ticks:
        wide = width(name, 12)
        if all(abs(x - y) > (wide + width(n, 12)) / 2 + 8 for y, n in kept):
            kept.append((x, name))
    return sorted(kept)


def cut(box: Box, *inside: str) -> str:
    """Only what lies in the plot.

    Args:
        box: the plot.
        inside: markup.
    """
    wide, high = box.right - box.left, box.bottom - box.top
    corner = " ".join(coordinate(v) for v in (box.left, box.top, wide, high))
    size = {"x": box.left, "y": box.top, "width": wide, "height": high}
    return tag("svg", *inside, viewBox=corner, **size)
