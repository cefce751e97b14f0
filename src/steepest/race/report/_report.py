"""The files of a finished race: HTML page, plots and JSON."""

from pathlib import Path

from .. import _disk
from .._outcome import Outcome
from ._page import page
from ._pictures import pictures
from ._results import results


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
