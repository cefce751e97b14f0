"""One race on the command line, from its options to the report."""

import sys
from pathlib import Path
from typing import Any

from rich.text import Text

from .. import _disk
from .._devices import use_all_cores
from .._problem import Problem
from .._race import race
from .._store import Store
from ..problems import load
from ..report import results, write_report
from ._console import console_for
from ._folders import last_folder, new_folder
from ._progress import Bars, Quiet
from ._stop import Stop, STOPPED
from ._table import print_outcome

_STDOUT = Path("-")


def run(
    problem: str | None = None,
    *,
    out: Path | None = None,
    resume: bool = False,
    json: Path | None = None,
    **options: Any,
) -> int:
    """Race, print the table, write the report. Returns the exit code.

    Args:
        problem: its name, or `module:attribute`; by default `digits`, or what is in the
            folder.
        out: the folder for all files; by default one of its own in `races`.
        resume: whether to go on with what is in the folder.
        json: where the numbers go too; `-` is stdout, and then the table is on stderr.
        options: as for `race`.
    """
    _check(json)
    use_all_cores()
    folder = out or (last_folder(problem) if resume else new_folder(problem))
    try:
        name = problem or Store(folder).settings(resume).get("problem", "digits")
        if problem is None and ":" in name:
            said = (
                f"race.json in {folder} names {name}: it is imported, and its code runs"
            )
            console_for(sys.stderr).print(said)
        known = load(name)
        with Stop() as stop, _watch(stop, known, options.get("time_budget")) as watch:
            outcome = race(known, **options, folder=folder, resume=resume, watch=watch)
    except Exception:
        if out is None:
            _disk.remove_folder(folder)  # made for this race, and nothing is in it
        raise
    console = console_for(sys.stdout)
    if json == _STDOUT:
        print(results(outcome), end="")
        console = console_for(sys.stderr)
    print_outcome(console, outcome)  # before anything is written, which may fail
    page = write_report(outcome, folder)
    if json is not None and json != _STDOUT:
        _write(json, results(outcome))
    console.print(Text(f"\nreport: {page}"))
    if stop.asked:
        console.print(Text(f"stopped: go on with --resume --out {folder}"))
        return STOPPED
    return 0 if outcome.sweeps else 1


def _check(json: Path | None) -> None:
    """Now, rather than after the race."""
    if json is None or json == _STDOUT:
        return
    if json.is_dir():
        raise ValueError(f"--json: {json} is a folder, expected a file.")
    if not json.parent.is_dir():
        raise ValueError(f"--json: there is no folder {json.parent}. Make it first.")


def _write(path: Path, text: str) -> None:
    """A file, whole or not at all; into a fifo or a device as it comes."""
    path = path.resolve()
    if _disk.is_file(path) or not _disk.exists(path):
        _disk.write(path, [text.encode()])
    else:
        path.write_text(text, encoding="utf-8")


def _watch(stop: Stop, problem: Problem, budget: float | None) -> Quiet:
    console = console_for(sys.stderr)
    if sys.stderr.isatty() and not console.is_dumb_terminal:
        return Bars(stop, problem, console, budget)
    return Quiet(stop)
