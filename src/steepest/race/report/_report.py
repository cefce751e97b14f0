"""The files of a finished race: HTML page, plots and JSON."""

import json
from dataclasses import fields
from pathlib import Path

from .. import _disk
from .._files import to_json
from .._outcome import Outcome
from .._standings import Standing, standings
from ._page import page
from ._pictures import pictures


def write_report(outcome: Outcome, folder: str | Path) -> Path:
    """Write `report.html`, `results.json` and the plots. Returns the page's path.

    Args:
        outcome: of a race.
        folder: where to write; created if missing.
    """
    folder = Path(folder)
    _disk.make_folder(folder)
    _disk.write(folder / "report.html", [page(outcome).encode()])
    _disk.write(folder / "results.json", [results(outcome).encode()])
    for name, picture in pictures(outcome).items():
        _disk.write(folder / f"{name}.svg", [picture.encode()])
    return folder / "report.html"


def results(outcome: Outcome) -> str:
    """A race as JSON: the table, and all numbers behind it.

    NaN, as in diverged runs, is `null`.

    Args:
        outcome: of a race.
    """
    head = ("problem", "about", "measure", "better", "target", "machine")
    content = {
        **{name: getattr(outcome, name) for name in head},
        "standings": [_row(row) for row in standings(outcome)],
        "remarks": list(outcome.remarks),
        "missing": [{"name": name, "why": why} for name, why in outcome.missing],
        "sweeps": [to_json(sweep) for sweep in outcome.sweeps],
    }
    return json.dumps(content, indent=1, allow_nan=False) + "\n"


def _row(row: Standing) -> dict[str, object]:
    head = {"name": row.name, "learning_rate": row.rate}
    own = {f.name: to_json(getattr(row, f.name)) for f in fields(Standing)[2:]}
    step = {
        "step_seconds": row.sweep.step_seconds,
        "step_spread": to_json(row.sweep.step_spread),
    }
    memory = {"bytes_per_param": row.sweep.bytes_per_param}
    return {**head, **own, **step, **memory}
