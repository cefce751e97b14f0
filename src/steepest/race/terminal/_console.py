"""Where things are printed: on a terminal as it is, in a pipe without its limits."""

from typing import Any

from rich.console import Console

_ENDLESS = 10_000  # letters: nothing that is printed here is as wide


def console_for(file: Any) -> Console:
    """What prints texts as they are; in a pipe without colour, and on long lines.

    Args:
        file: `sys.stdout` or `sys.stderr`.
    """
    width = None if file.isatty() else _ENDLESS
    return Console(file=file, width=width, highlight=False, markup=False, emoji=False)
