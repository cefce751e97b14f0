"""`steepest race`, from its options to the report."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

from rich.text import Text

from .. import _disk
from .._devices import use_all_cores
from .._problem import Problem
from .._race import race
from .._store import Store
from ..entrants import is_reference
from ..problems import DEFAULT, load
from ..report import (
    import_logger,
    log_to,
    Logger,
    recommendation,
    results,
    write_report,
)
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
    log: Logger | None = None,
    **options: Any,
) -> int:
    """Race, print the table and write the report. Returns the exit code.

    Args:
        problem: its name, or `module:attribute`; by default the folder's problem, or
            `small_bytes` in a new folder.
        out: the folder for all files; by default a new one in `races`.
        resume: whether to continue the race in the folder.
        json: file for all numbers; `-` is stdout, and the table then goes to stderr.
        log: logger to which all runs are written at the end.
        options: as for `race`.
    """
    _check(json)
    if log is not None:
        import_logger(log)  # an error now, not after the race
    use_all_cores()
    folder = out or (last_folder(problem) if resume else new_folder(problem))
    try:
        old = problem is None, resume and not options.get("optimizers")
        before = Store(folder).settings(resume) if any(old) else {}
        name = problem or str(before.get("problem", DEFAULT))
        for text in _imports(before, *old):
            note = f"{folder}/race.json: importing {text}, which runs its code"
            console_for(sys.stderr).print(note)
        # What the user's own code prints must not get into the JSON.
        with redirect_stdout(sys.stderr if json == _STDOUT else sys.stdout):
            known = load(name)
            budget = options.get("time_budget")
            with Stop() as stop, _watch(stop, known, budget) as watch:
                outcome = race(
                    known, **options, folder=folder, resume=resume, watch=watch
                )
    except Exception:
        if out is None:
            _disk.remove_folder(folder)  # if empty: it was made for this race
        raise
    console = console_for(sys.stdout)
    if json == _STDOUT:
        print(results(outcome), end="")
        console = console_for(sys.stderr)
    print_outcome(console, outcome)  # first, because writing may fail
    page = write_report(outcome, folder)
    if json is not None and json != _STDOUT:
        _write(json, results(outcome))
    console.print(Text(f"\nreport: {page}"))
    if log is not None:
        with redirect_stdout(sys.stderr):  # trackio prints, perhaps after our JSON
            log_to(log, outcome, folder)
    if stop.asked:
        console.print(Text(f"stopped; to continue: --resume --out {folder}"))
        return STOPPED
    return 1 if recommendation(outcome) is None else 0


def _imports(
    before: Mapping[str, Any], problem: bool, optimizers: bool
) -> Iterator[str]:
    """What the problem or the optimizers of a race to resume import."""
    if problem and ":" in before.get("problem", ""):
        yield before["problem"]
    if optimizers:
        named = before.get("named", {})
        texts = [named.get(name, name) for name in before.get("optimizers", ())]
        yield from (text for text in texts if text is not None and is_reference(text))


def _check(json: Path | None) -> None:
    """Check the path before the race, not after it."""
    if json is None or json == _STDOUT:
        return
    if json.is_dir():
        raise ValueError(f"--json: {json} is a folder, expected a file.")
    if not json.parent.is_dir():
        raise ValueError(f"--json: the folder {json.parent} does not exist.")


def _write(path: Path, text: str) -> None:
    """Write a file atomically; write to a fifo or device directly."""
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
