"""The `steepest` command-line program: its commands and terminal output."""

from ._command import main as main
