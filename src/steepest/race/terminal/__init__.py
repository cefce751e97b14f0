"""The program `steepest`: its commands, and what they show in a terminal."""

from ._command import main as main
