"""Consoles for stdout and stderr; in a pipe, lines are never wrapped."""

from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from .._visible import visible

_ENDLESS = 10_000  # columns: wider than anything printed here


def console_for(file: Any) -> Console:
    """A console that prints text verbatim; in a pipe, without colour or wrapping.

    Args:
        file: `sys.stdout` or `sys.stderr`.
    """
    width = None if file.isatty() else _ENDLESS
    return _Console(file=file, width=width, highlight=False, markup=False, emoji=False)


class _Console(Console):
    """A console that escapes control characters in what it prints."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Render the segments to print.

        Args:
            renderable: what to print.
            options: rendering options.
        """
        for text, style, control in super().render(renderable, options):
            yield Segment(text if control else visible(text), style, control)
