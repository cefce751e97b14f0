"""The program `steepest`."""

import io
import os
import sys
from collections.abc import Sequence

_NEEDED = "cyclopts", "rich"


def main(tokens: Sequence[str] | None = None) -> int:
    """Run a command of `steepest`; returns the exit code.

    Args:
        tokens: what stands after the program's name; by default what the shell says.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal may not know `±`
    try:
        from ._app import app
    except ModuleNotFoundError as error:
        if error.name not in _NEEDED:
            raise
        said = f'steepest: {error.name} is missing. Run `pip install "steepest[race]"`.'
        print(said, file=sys.stderr)
        return 1
    tokens = sys.argv[1:] if tokens is None else tokens
    try:
        code = app.meta(tokens, result_action="return_value")
        sys.stdout.flush()
    except BrokenPipeError:  # who reads has seen enough, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 0
    return code or 0
