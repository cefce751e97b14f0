"""The entry point of the `steepest` program."""

import io
import os
import sys
from collections.abc import Sequence

import steepest

_NEEDED = "cyclopts", "rich"
_COMMANDS = """\
  steepest race PROBLEM        train a model with several optimizers and compare them
  steepest find-lr PROBLEM     find a learning rate in one short run
  steepest describe OPTIMIZER  show which transformation updates each leaf of a model
  steepest plot-schedule TEXT  plot a schedule in the terminal
  steepest optimizers          list the optimizers that can race
  steepest problems            list the built-in problems
  steepest completion SHELL    print the tab-completion script for a shell
"""


def main(tokens: Sequence[str] | None = None) -> int:
    """Run a `steepest` command and return the exit code.

    Args:
        tokens: the command-line arguments; by default `sys.argv[1:]`.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # some terminals cannot encode `±`
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
    except BrokenPipeError:  # the reader has closed the pipe, as `head` does
        _print_no_more()
        return 0


def _printed() -> int:
    """Flush stdout. Returns the exit code: 1 if the disk is full."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:  # `steepest race --json - > file` on a full disk
        _print_no_more()
        print(f"error: cannot print the results: {error.strerror}.", file=sys.stderr)
        return 1
    return 0


def _print_no_more() -> None:
    """Discard further output: Python flushes stdout again on exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _without(name: str, tokens: list[str]) -> int:
    """Handle `--version` and `--help` without the optional packages."""
    if tokens == ["--version"]:
        print(steepest.__version__)
        return 0
    install = f'{name} is not installed. Run `pip install "steepest[race]"`.'
    if not tokens or {"--help", "-h"} & {*tokens}:
        print(f"steepest: which optimizer, at which learning rate?\n\n{_COMMANDS}")
        print(f"The commands need extra packages: {install}")
        return 0
    print(f"steepest: {install}", file=sys.stderr)
    return 1
