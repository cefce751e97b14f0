"""The files of a finished race: HTML page, plots and JSON."""

import json
from pathlib import Path

from .. import _disk
from .._files import to_json
from .._outcome import Outcome
from ._advice import Choice, recommendation
from ._page import page
from ._pictures import pictures
from ._records import standing_records


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
        "standings": standing_records(outcome),
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
