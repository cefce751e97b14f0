"""SVG as text: tags, smooth lines, panels, and a file readable in light and dark.

Every picture has its own background, so that it is readable even if a page switches its
theme without the browser's knowledge.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

STYLE = """\
svg { --paper: #fff; --ink: #1c2026; --soft: #5c6672; --line: #0b6bb3; --end: #d1560b;
  color: var(--ink); font: 13px system-ui, "Segoe UI", Roboto, Arial, sans-serif }
@media (prefers-color-scheme: dark) {
  svg { --paper: #14171b; --ink: #eceff2; --soft: #a0a9b4; --line: #5aa9f0;
    --end: #ff8a45 } }
.paper { fill: var(--paper) } text { fill: var(--ink) }
.soft { fill: var(--soft); font-size: 12px } .title { font-weight: 600 }
.frame { fill: none; stroke: var(--soft); opacity: .5 }
"""


@dataclass(frozen=True)
class Panel:
    """A rectangle of the picture, in pixels, that shows a rectangle of the plane.

    Attributes:
        left: of the panel.
        top: of the panel.
        width: of the panel.
        height: of the panel.
        xs: the values at its left and right side.
        ys: the values at its bottom and top.
    """

    left: float
    top: float
    width: float
    height: float
    xs: tuple[float, float]
    ys: tuple[float, float]

    def pixels(self, points: np.ndarray) -> np.ndarray:
        """Points of the plane, `(n, 2)`, in pixels from the panel's top left corner."""
        (left, right), (bottom, top) = self.xs, self.ys
        across = (points[:, 0] - left) / (right - left) * self.width
        down = (top - points[:, 1]) / (top - bottom) * self.height
        return np.stack([across, down], axis=1)

    def outline(self, points: np.ndarray) -> np.ndarray:
        """A curve of the plane in as few pixels as needed; cut just outside the panel.

        Args:
            points: many, of shape `(n, 2)`.
        """
        far = 20.0
        most = np.array([self.width, self.height]) + far
        return _fewer(np.clip(self.pixels(points), -far, most))

    def holds(self, points: np.ndarray) -> bool:
        """Whether all points of the plane are inside the panel."""
        most = np.array([self.width, self.height])
        inside = (self.pixels(points) >= 0) & (self.pixels(points) <= most)
        return bool(inside.all())

    def draw(self, *inside: str) -> str:
        """Markup in the panel's own pixels, cut at its sides, and a frame."""
        size = {"width": self.width, "height": self.height}
        frame = tag("rect", class_="frame", **size)
        return tag("svg", *inside, frame, x=self.left, y=self.top, **size)


def tag(name: str, *inside: str, **attributes: str | float) -> str:
    """A tag; `class_` is written as `class`, and `text_anchor` as `text-anchor`."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_value(x)}"'
        for key, x in attributes.items()
    )
    return f"<{name}{written}>{''.join(inside)}</{name}>"


def text(what: str, x: float, y: float, **attributes: str | float) -> str:
    """Text that starts at a position."""
    return tag("text", escape(what), x=x, y=y, **attributes)


def line(points: np.ndarray, closed: bool = False) -> str:
    """The `d` of a path through points in pixels, as far as they are finite.

    It is written as differences in tenths of a pixel, which are short. Each is rounded
    so that the errors do not add up.

    Args:
        points: of shape `(n, 2)`.
        closed: whether the last point is joined to the first.
    """
    bad = ~np.isfinite(points).all(axis=1)
    points = points[: int(np.argmax(bad))] if bad.any() else points
    tenths = np.round(np.clip(points, -1e5, 1e5) * 10).astype(int)
    steps = np.diff(tenths, axis=0)
    pairs = [f"{_tenths(x)} {_tenths(y)}" for x, y in steps.tolist()]
    first = " ".join(_tenths(x) for x in tenths[0].tolist())
    # A minus sign also separates numbers.
    return f"M{first}l{' '.join(pairs)}".replace(" -", "-") + ("z" if closed else "")


def document(
    title: str, size: tuple[float, float], style: str, inside: Sequence[str]
) -> str:
    """The whole file.

    Args:
        title: what screen readers say.
        size: width and height in pixels.
        style: CSS besides `STYLE`.
        inside: markup.
    """
    width, height = size
    return tag(
        "svg",
        tag("title", escape(title)),
        tag("style", "\n" + STYLE + style),
        tag("rect", class_="paper", width=width, height=height, rx=6),
        "\n",
        "\n".join(inside),
        "\n",
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {_value(width)} {_value(height)}",
        width=width,
        height=height,
        role="img",
    )


def _fewer(points: np.ndarray, error: float = 0.15) -> np.ndarray:
    """Leave out points whose absence moves a curve by less than an error, in pixels.

    Douglas and Peucker, 1973: keep the point that is farthest from the chord, and
    repeat on both sides of it.
    """
    chord = points[-1] - points[0]
    length = np.hypot(*chord)
    off = points - points[0]
    if length > 0:
        away = np.abs(off[:, 0] * chord[1] - off[:, 1] * chord[0]) / length
    else:  # a closed curve
        away = np.hypot(off[:, 0], off[:, 1])
    k = int(np.argmax(away))
    if away[k] < error:
        return points[[0, -1]]
    return np.concatenate(
        [_fewer(points[: k + 1], error)[:-1], _fewer(points[k:], error)]
    )


def _tenths(x: int) -> str:
    return f"{x / 10:g}".replace("0.", ".", 1) if abs(x) < 10 else f"{x / 10:g}"


def _value(x: str | float) -> str:
    return escape(x) if isinstance(x, str) else f"{round(x, 1):g}"
