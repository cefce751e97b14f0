"""The default folder of a race, in `races`."""

import itertools
import re
from pathlib import Path

from .. import _disk
from ..problems import DEFAULT

RACES = Path("races")


def new_folder(problem: str | None) -> Path:
    """Make a new folder named after the problem.

    Races that start at the same time get different folders.

    Args:
        problem: the problem on the command line.
    """
    name = _slug(problem or DEFAULT)
    more = (f"{name}-{k}" for k in itertools.count(2))
    paths = (RACES / name for name in itertools.chain([name], more))
    return next(path for path in paths if _disk.make_folder(path))


def last_folder(problem: str | None) -> Path:
    """The folder of the latest race.

    Args:
        problem: consider only races of this problem; `None` for all.
    """
    paths = [path for path in RACES.glob("*/race.json") if _disk.is_file(path)]
    if problem is not None:
        mine = re.compile(re.escape(_slug(problem)) + r"(-\d+)?")
        paths = [path for path in paths if mine.fullmatch(path.parent.name)]
    if not paths:
        whose = "" if problem is None else f" of {problem}"
        raise ValueError(
            f"--resume: there is no race{whose} in {RACES}. Pass its folder with --out."
        )
    return max(paths, key=lambda path: path.stat().st_mtime).parent


def _slug(problem: str) -> str:
    return re.sub(r"[^\w.-]+", "-", problem).strip("-.") or "race"
