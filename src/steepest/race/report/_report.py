"""The files of a finished race: HTML page, plots and JSON."""

import json
from dataclasses import asdict, fields
from pathlib import Path

from .. import _disk
from .._files import to_json
from .._outcome import Outcome
from .._standings import Standing, standings
from ._advice import Choice, recommendation
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
        "schedule": outcome.schedule,
        "recommendation": _advice(outcome),
        "standings": [_row(row) for row in standings(outcome)],
        "remarks": list(outcome.remarks),
        "missing": [{"name": name, "why": why} for name, why in outcome.missing],
        "sweeps": [to_json(sweep) for sweep in outcome.sweeps],
    }
    return json.dumps(content, indent=1, allow_nan=False) + "\n"


def _advice(outcome: Outcome) -> dict[str, object] | None:
    """The recommendation, with the second choice."""
    advice = recommendation(outcome)
    if advice is None:
        return None
    choices = {"first": advice.first, "second": advice.second}
    return {key: x and _choice(x) for key, x in choices.items()}


def _choice(choice: Choice) -> dict[str, object]:
    return {
        "name": choice.row.name,
        "learning_rate": choice.row.rate,
        "code": choice.code,
        "why": choice.why,
    }


def _row(row: Standing) -> dict[str, object]:
    head = {"name": row.name, "learning_rate": row.rate}
    own = {f.name: to_json(getattr(row, f.name)) for f in fields(Standing)[2:]}
    if row.breadth is not None:
        own["breadth"] = {**asdict(row.breadth), "factor": row.breadth.factor}
    step = {
        "step_seconds": row.sweep.step_seconds,
        "step_spread": to_json(row.sweep.step_spread),
    }
    memory = {"bytes_per_param": row.sweep.bytes_per_param}
    return {**head, **own, **step, **memory}
