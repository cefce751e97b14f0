"""Where things are printed: on a terminal as it is, in a pipe without its limits."""

from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from .._visible import visible

_ENDLESS = 10_000  # letters: nothing that is printed here is as wide


def console_for(file: Any) -> Console:
    """What prints texts as they are; in a pipe without colour, and on long lines.

    Args:
        file: `sys.stdout` or `sys.stderr`.
    """
    width = None if file.isatty() else _ENDLESS
    return _Console(file=file, width=width, highlight=False, markup=False, emoji=False)


class _Console(Console):
    """One that obeys no control characters in what it prints."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """The pieces of what is printed.

        Args:
            renderable: what it is.
            options: how.
        """
        for text, style, control in super().render(renderable, options):
            yield Segment(text if control else visible(text), style, control)
