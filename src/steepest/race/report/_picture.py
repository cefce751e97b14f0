"""A finished plot, for a page or as a file."""

import json
from dataclasses import dataclass
from pathlib import Path

from ._markup import coordinate, tag, words
from ._numbers import Number
from ._scales import Scale

STYLE = Path(__file__).with_name("picture.css").read_text("utf-8")


Points = tuple[int, str, list[tuple[float, float]]]  # key, name, and x and y values


@dataclass(frozen=True)
class Hover:
    """The axes and lines of a plot: for zooming, and for the values under the pointer.

    Attributes:
        x: the horizontal axis; it spans the plot area.
        y: the vertical axis; it does, too.
        lines: the values of each line.
    """

    x: Scale
    y: Scale
    lines: list[Points]

    def to_json(self, lines: bool) -> str:
        """The data for the script of the page.

        Args:
            lines: whether to include the lines; the narrow plot shares the wide one's.
        """
        axis = lambda s: [s.low, s.high, s.start, s.end, s.log, s.zero]
        data = {"x": axis(self.x), "y": axis(self.y)}
        more = {"lines": self.lines} if lines else {}
        return json.dumps({**data, **more}, separators=(",", ":"))


@dataclass(frozen=True)
class Picture:
    """A finished plot.

    Attributes:
        name: of the file, without its suffix.
        title: what it shows.
        says: a description for screen readers.
        width: in pixels.
        height: in pixels.
        body: the SVG markup inside it.
        hover: what it tells about the place under the pointer.
    """

    name: str
    title: str
    says: str
    width: Number
    height: Number
    body: str
    hover: Hover | None = None

    def inline(self, kind: str) -> str:
        """The SVG element for a page, which provides the style.

        Args:
            kind: a CSS class.
        """
        hover = None if self.hover is None else self.hover.to_json(kind == "wide")
        return self._svg(self.body, class_=f"picture {kind}", data_hover=hover)

    def alone(self) -> str:
        """A standalone SVG file."""
        paper = tag("rect", class_="paper", width=self.width, height=self.height)
        return self._svg(
            tag("title", words(self.title)),
            tag("desc", words(self.says)),
            tag("style", STYLE),
            paper,
            self.body,
            xmlns="http://www.w3.org/2000/svg",
            class_="picture",
            width=self.width,
            height=self.height,
        )

    def _svg(self, *inside: str, **attributes: str | Number | None) -> str:
        box = f"0 0 {coordinate(self.width)} {coordinate(self.height)}"
        label = f"{self.title}. {self.says}"
        return tag(
            "svg", *inside, viewBox=box, role="img", aria_label=label, **attributes
        )
