"""The names of the lines, beside or below the plot."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ._numbers import Number
from ._plot import Box, ROW
from ._svg import mark, rule, series, shortened, text, width

LETTERS = 13.0  # font size, in pixels


@dataclass(frozen=True)
class Label:
    """The name of a line.

    Attributes:
        key: the number of the optimizer.
        name: of the optimizer.
        y: the height at which its line ends.
        touches: whether the line ends at the right edge of the plot.
        first: whether this is the best optimizer.
    """

    key: int
    name: str
    y: Number
    touches: bool
    first: bool


def names(box: Box, labels: Sequence[Label]) -> tuple[str, Number]:
    """Draw the names. Returns the markup and the height of the whole picture.

    They stand beside the ends of the lines, or below the plot if it has no gutter.

    Args:
        box: the plot area.
        labels: the names.
    """
    if box.layout.gutter:
        return _beside(box, labels), box.bottom + 50
    return _below(box, labels)


def _beside(box: Box, labels: Sequence[Label]) -> str:
    order = sorted(labels, key=lambda label: label.y)
    ys = spread([label.y for label in order], box.top + 4, box.bottom - 4, ROW)
    x = box.right + 22
    parts = []
    for label, y in zip(order, ys, strict=True):
        leader = rule(box.right + 6, label.y, x - 6, y, "leader")
        inside = leader if label.touches else ""
        parts.append(_name(label, x, y, box.layout.width - x - 10, inside))
    return "".join(parts)


def _below(box: Box, labels: Sequence[Label]) -> tuple[str, Number]:
    wide = box.layout.width
    longest = max([width(label.name, LETTERS) for label in labels], default=0.0)
    several = 2 if 1.12 * longest + 20 < wide / 2 else 1  # bold is wider
    top = box.bottom + 62
    parts = [
        _name(
            label, 6 + k % several * wide / 2, top + k // several * ROW, wide - 26, ""
        )
        for k, label in enumerate(labels)
    ]
    return "".join(parts), top + -(-len(labels) // several) * ROW


def _name(label: Label, x: Number, y: Number, space: Number, inside: str) -> str:
    """The marker of a line and its name."""
    name = shortened(label.name, space, LETTERS)
    tip = label.name if name != label.name else ""
    sign = mark(label.key, x, y, 4.5, tip=tip)
    kind = "name first" if label.first else "name"
    words = text(name, x + 11, y + 4.5, class_=kind)
    return series(label.key, inside, sign, words, legend=True)


def spread(
    wanted: Sequence[Number], low: Number, high: Number, gap: Number
) -> list[Number]:
    """Move positions at least `gap` apart, minimising the sum of squared moves.

    Args:
        wanted: the positions, in order.
        low: lower bound.
        high: upper bound.
        gap: minimum distance.

    >>> spread([10, 11, 40], 0, 100, 4)
    [8.5, 12.5, 40.0]
    """
    blocks: list[list[float]] = []
    for k, place in enumerate(wanted):
        blocks.append([float(place) - k * gap])
        # Blocks that overlap are merged, and move together.
        while len(blocks) > 1 and np.mean(blocks[-2]) > np.mean(blocks[-1]):
            last = blocks.pop()
            blocks[-1] += last
    means = [float(np.mean(block)) for block in blocks for _ in block]
    end = max(low, high - (len(means) - 1) * gap)
    return [min(max(m, low), end) + k * gap for k, m in enumerate(means)]
