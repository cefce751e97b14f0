"""The plots of a race."""

from .._outcome import Outcome
from ._curves import curves
from ._finals import finals
from ._picture import Picture
from ._plot import PlotLayout, WIDE
from ._sensitivity import sensitivity


def pictures(outcome: Outcome) -> dict[str, str]:
    """Every plot as the text of an SVG file, by name.

    Args:
        outcome: of a race.
    """
    return {picture.name: picture.alone() for picture in drawn(outcome, WIDE)}


def drawn(outcome: Outcome, layout: PlotLayout) -> list[Picture]:
    """Draw every plot.

    Args:
        outcome: of a race.
        layout: their size.
    """
    return [
        curves(outcome, layout, "steps"),
        curves(outcome, layout, "seconds"),
        curves(outcome, layout, "seconds", "metric"),
        sensitivity(outcome, layout),
        finals(outcome, layout),
    ]
