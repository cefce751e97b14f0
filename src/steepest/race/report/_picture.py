"""A finished plot, for a page or as a file."""

from dataclasses import dataclass
from pathlib import Path

from ._markup import coordinate, tag, words
from ._numbers import Number

STYLE = Path(__file__).with_name("picture.css").read_text("utf-8")


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
    """

    name: str
    title: str
    says: str
    width: Number
    height: Number
    body: str

    def inline(self, kind: str) -> str:
        """The SVG element for a page, which provides the style.

        Args:
            kind: a CSS class.
        """
        return self._svg(self.body, class_=f"picture {kind}")

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

    def _svg(self, *inside: str, **attributes: str | Number) -> str:
        box = f"0 0 {coordinate(self.width)} {coordinate(self.height)}"
        label = f"{self.title}. {self.says}"
        return tag(
            "svg", *inside, viewBox=box, role="img", aria_label=label, **attributes
        )
