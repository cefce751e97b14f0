"""The program `steepest`."""

import io
import os
import sys
from collections.abc import Sequence

import steepest

_NEEDED = "cyclopts", "rich"
_COMMANDS = """\
  steepest race PROBLEM        train a model with several optimizers, and compare them
  steepest describe OPTIMIZER  what handles each leaf of a model
  steepest plot-schedule TEXT  draw a schedule in the terminal
  steepest optimizers          the optimizers that can race
  steepest problems            the problems that need no data of yours
  steepest completion SHELL    what makes Tab complete commands and options
"""


def main(tokens: Sequence[str] | None = None) -> int:
    """Run a command of `steepest`; returns the exit code.

    Args:
        tokens: what stands after the program's name; by default what the shell says.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal may not know `±`
    tokens = sys.argv[1:] if tokens is None else tokens
    try:
        from ._app import app
    except ModuleNotFoundError as error:
        if error.name not in _NEEDED:
            raise
        return _without(error.name, list(tokens))
    try:
        code = app.meta(tokens, result_action="return_value")
        return _printed() or code or 0
    except BrokenPipeError:  # who reads has seen enough, as `head` does
        _print_no_more()
        return 0


def _printed() -> int:
    """Print what is left to print; 1 if there is no room for it."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:  # `steepest race --json - > file`, and the disk is full
        _print_no_more()
        print(f"error: cannot print the results: {error.strerror}.", file=sys.stderr)
        return 1
    return 0


def _print_no_more() -> None:
    """Python prints what is left once more when it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _without(name: str, tokens: list[str]) -> int:
    """What can be done without the packages that the commands need."""
    if tokens == ["--version"]:
        print(steepest.__version__)
        return 0
    install = f'{name} is missing. Run `pip install "steepest[race]"`.'
    if not tokens or {"--help", "-h"} & {*tokens}:
        print(f"steepest: which optimizer, at which learning rate?\n\n{_COMMANDS}")
        print(f"The commands need a few packages more: {install}")
        return 0
    print(f"steepest: {install}", file=sys.stderr)
    return 1
