"""Where a race goes if nobody says: a folder of its own in `races`."""

import itertools
import re
from pathlib import Path

from .. import _disk

RACES = Path("races")


def new_folder(problem: str | None) -> Path:
    """Make a folder that was not there, named after the problem.

    Races that start together get one each.

    Args:
        problem: as it was asked for.
    """
    name = _slug(problem or "digits")
    more = (f"{name}-{k}" for k in itertools.count(2))
    paths = (RACES / name for name in itertools.chain([name], more))
    return next(path for path in paths if _disk.make_folder(path))


def last_folder(problem: str | None) -> Path:
    """The folder that was raced in last.

    Args:
        problem: whose race it must be; `None` if it may be any.
    """
    found = [path for path in RACES.glob("*/race.json") if _disk.is_file(path)]
    if problem is not None:
        mine = re.compile(re.escape(_slug(problem)) + r"(-\d+)?")
        found = [path for path in found if mine.fullmatch(path.parent.name)]
    if not found:
        whose = "" if problem is None else f" of {problem}"
        raise ValueError(
            f"--resume: there is no race{whose} in {RACES}. Say with --out where it is."
        )
    return max(found, key=lambda path: path.stat().st_mtime).parent


def _slug(problem: str) -> str:
    return re.sub(r"[^\w.-]+", "-", problem).strip("-.") or "race"
