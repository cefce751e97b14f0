"""`steepest race bytes --suite`, from its options to the page."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.text import Text

from .. import _disk
from ..suite import arms_named, page, pictures, run_suite, SIZES, summary, table_of
from ._console import console_for
from ._folders import RACES
from ._stop import Stop, STOPPED

_PROBLEM = "bytes"


def suite(
    problem: str | None = None,
    *,
    small: bool = False,
    optimizers: Sequence[str] | None = None,
    time_budget: float | None = None,
    out: Path | None = None,
    resume: bool = False,
    **others: Any,
) -> int:
    """Run the suite, print its tables and write its page. Returns the exit code.

    Args:
        problem: only `bytes` has a suite.
        small: whether to use the size for CPUs.
        optimizers: names of arms; by default all of the size.
        time_budget: in seconds; arms that do not fit are skipped.
        out: folder for all files; by default one in `races`.
        resume: whether to continue the suite in the folder.
        others: options of `race` that the suite does not have.
    """
    if problem not in (None, _PROBLEM):
        raise ValueError(f"--suite: the problem is {problem}, expected {_PROBLEM}.")
    if others:
        name = next(iter(others)).replace("_", "-")
        raise ValueError(
            f"--suite: the suite has no option --{name}, because all optimizers get "
            "the same budget. Its options: --small, --optimizers, --time-budget, "
            "--out, --resume."
        )
    name = "small" if small else "full"
    size, folder = SIZES[name], out or RACES / f"suite-{name}"
    arms = arms_named(optimizers, size.arms)
    console = console_for(sys.stderr)
    with Stop() as stop:
        record = run_suite(
            size,
            arms,
            folder / "quality.json",
            resume=resume,
            time_budget=time_budget,
            stopped=lambda: stop.asked,
            say=lambda line: console.print(Text(line)),
        )
    console_for(sys.stdout).print(Text(summary(record)))
    records = {name: record}
    _disk.write(folder / "quality.md", [page(records).encode()])
    for title, picture in pictures(records).items():
        _disk.write(folder / title, [picture.encode()])
    console_for(sys.stdout).print(Text(f"\npage: {folder / 'quality.md'}"))
    if stop.asked:
        console.print(Text(f"stopped; to continue: --suite --resume --out {folder}"))
        return STOPPED
    return 0 if table_of(record).lines else 1
