"""The files of a race.

race.json            the settings
runs/adamw.json      results of a finished optimizer
runs/muon.begun      results and state of an unfinished one

Every file names its race and has a fingerprint of what its numbers depend on. A file of
another race, or of other code, data, rates, seeds or steps, is rejected.
"""

import hashlib
import re
import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from . import _disk
from ._files import File, from_json, read_sealed, to_json, write_sealed
from ._fingerprint import (
    check_same,
    Fingerprint,
    OPTIMIZER,
    optimizer_fingerprint,
    race_fingerprint,
)
from ._model import Model
from ._outcome import Sweep
from ._problem import Problem
from ._settings import Settings
from ._sweep import Begun, Evaluation

_ARRAYS = "loss", "metric"
_TUPLES = "rates", "seeds", "steps", "seconds", "stopped", "shared"
_SELDOM = 20  # saving takes at most a twentieth of the time
_LOCK = ".lock"
_SETTINGS = "the settings of a race"
_KINDS = {"json": "all runs of", "begun": "unfinished runs of"}  # by ending


class Store:
    """The folder of one race.

    Args:
        folder: its path, which need not exist yet.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._manifest, self._runs = folder / "race.json", folder / "runs"
        self._again = 0.0  # time of the next save
        self._id: str | None = None  # of the race
        self._common: Fingerprint = {}  # the part that all files share
        self._own: dict[str, str] = {}  # the part of each optimizer

    def settings(self, resume: bool) -> Mapping[str, object]:
        """The settings of the race in the folder; empty for a new race.

        Args:
            resume: whether to resume. If not, the folder must be new or empty.
        """
        if resume and not _disk.exists(self.folder):
            raise ValueError(
                f"race: the folder {self.folder} does not exist, so there is no race "
                "to resume. To start one, omit `resume` (--resume)."
            )
        if not _disk.exists(self._manifest):
            if not self._only_debris():
                raise ValueError(
                    f"race: {self.folder} contains files that are not of a race; they "
                    "were not changed. Use another folder."
                )
            return {}
        if not resume:
            raise ValueError(
                f"race: {self.folder} already contains a race. Continue it with "
                "`resume` (--resume), or use another folder."
            )
        content = self._read(self._manifest, _SETTINGS)[0]
        self._id = content["race"]
        return content["settings"]

    @contextmanager
    def open(self, settings: Settings, problem: Problem) -> Iterator[None]:
        """Create and lock the folder, and write the settings.

        Args:
            settings: of the race.
            problem: of the race.
        """
        self._common = race_fingerprint(problem, settings)
        _disk.make_folder(self._runs)
        _disk.check_folder(self._runs)
        with _disk.locked(self._runs / _LOCK) as alone:
            if not alone:
                raise ValueError(
                    f"race: another process is using {self.folder}. Wait for it, or "
                    "use another folder."
                )
            self._check_unchanged()
            self._clean()
            for name in settings.entrants:  # check all files before anything runs
                if self._find(name, "json") is None:
                    self._find(name, "begun")
            about = {"settings": settings.stored, "fingerprint": self._common}
            self._write(self._manifest, _SETTINGS, about)
            yield

    def finished(self, model: Model) -> Sweep | None:
        """The results of an optimizer, if it is finished.

        Args:
            model: one run of it.
        """
        name = model.entrant.name
        file = self._find(name, "json", model)
        return None if file is None else _sweep(file[0]["sweep"])

    def begun(self, model: Model) -> Begun | None:
        """The interrupted runs of an optimizer, if there are any.

        Args:
            model: one run of it.
        """
        name = model.entrant.name
        file = self._find(name, "begun", model)
        if file is None:
            return None
        content, data = file
        sweep = _sweep(content["sweep"])
        ends = np.cumsum(content["sizes"], dtype=int)[:-1]
        saved = np.split(np.frombuffer(data, np.uint8), ends)
        return Begun(sweep, saved)

    def keep(self, evaluation: Evaluation) -> None:
        """Write the results of a finished optimizer.

        Args:
            evaluation: the last evaluation.
        """
        name = evaluation.sweep.name
        about = {
            "sweep": to_json(evaluation.sweep),
            **self._fingerprint(evaluation.program.model),
        }
        self._write(self._path(name, "json"), _role(name, "json"), about)
        _disk.remove(self._path(name, "begun"))
        self._again = 0.0

    def keep_begun(self, evaluation: Evaluation, *, now: bool = False) -> None:
        """Write the state of unfinished runs, unless that was done recently.

        Args:
            evaluation: the latest evaluation.
            now: whether to write in any case.
        """
        start = time.monotonic()
        if start < self._again and not now:
            return
        begun, name = evaluation.begun(), evaluation.sweep.name
        about = {
            "sizes": [x.size for x in begun.saved],
            "sweep": to_json(begun.sweep),
            **self._fingerprint(evaluation.program.model),
        }
        path, role = self._path(name, "begun"), _role(name, "begun")
        self._write(path, role, about, begun.saved)
        end = time.monotonic()
        self._again = end + max(1.0, _SELDOM * (end - start))

    def _fingerprint(self, model: Model) -> dict[str, Fingerprint]:
        """The fingerprint of an optimizer, which is traced once."""
        name = model.entrant.name
        if name not in self._own:
            self._own[name] = optimizer_fingerprint(model)
        return {"fingerprint": {**self._common, OPTIMIZER: self._own[name]}}

    def _find(self, name: str, ending: str, model: Model | None = None) -> File | None:
        """The content of an optimizer's file and its bytes, if it is there and ours.

        Without a model, its program is not compared.
        """
        path = self._path(name, ending)
        if not _disk.exists(path):
            return None
        content, data = self._read(path, _role(name, ending))
        if content["race"] != self._id:
            raise _disk.left_alone(path, "belongs to another race")
        then, now = dict(content["fingerprint"]), self._common
        if model is None:
            then.pop(OPTIMIZER, None)
        else:
            now = self._fingerprint(model)["fingerprint"]
        check_same(path, then, now)
        return content, data

    def _read(self, path: Path, role: str) -> File:
        """Read a file and check that it was written under this name."""
        content, data = read_sealed(path)
        if content["role"] != role:
            raise _disk.left_alone(path, f"contains {content['role']}, expected {role}")
        return content, data

    def _write(
        self,
        path: Path,
        role: str,
        about: Mapping[str, object],
        saved: Sequence[np.ndarray] = (),
    ) -> None:
        write_sealed(path, {"role": role, "race": self._id, **about}, saved)

    def _check_unchanged(self) -> None:
        """Check that the race is still the one that `settings` has read."""
        race = None
        if _disk.exists(self._manifest):
            content = self._read(self._manifest, _SETTINGS)[0]
            race = content["race"]
            if race == self._id:
                check_same(self._manifest, content["fingerprint"], self._common)
        if race != self._id:
            raise ValueError(
                f"race: another process has started a race in {self.folder}. Resume "
                "it, or use another folder."
            )
        self._id = self._id or secrets.token_hex(8)

    def _only_debris(self) -> bool:
        """Whether the folder has only leftovers of a race that was killed early."""
        rest = {x for x in _disk.names(self.folder) if not _disk.is_temporary(x)}
        if not rest:
            return True
        if rest != {self._runs.name} or not _disk.is_folder(self._runs):
            return False
        inside = _disk.names(self._runs)
        return all(_disk.is_temporary(x) or x == _LOCK for x in inside)

    def _clean(self) -> None:
        """Remove the temporary files of a killed race."""
        for folder in (self.folder, self._runs):
            for name in filter(_disk.is_temporary, _disk.names(folder)):
                _disk.remove(folder / name)

    def _path(self, name: str, ending: str) -> Path:
        """The path of an optimizer's file: readable and unique."""
        slug = re.sub("[^a-z0-9_]+", "-", name.lower()).strip("-")[:40]
        if slug != name:
            slug = f"{slug}-{hashlib.sha256(name.encode()).hexdigest()[:6]}"
        return self._runs / f"{slug}.{ending}"


class Nowhere:
    """The store of a race that is not saved."""

    def settings(self, resume: bool) -> Mapping[str, object]:
        """No settings.

        Args:
            resume: must be false.
        """
        if resume:
            raise ValueError("race: `resume` needs a `folder`. Pass the race's folder.")
        return {}

    def open(
        self, settings: Settings, problem: Problem
    ) -> AbstractContextManager[None]:
        """Do nothing.

        Args:
            settings: of the race.
            problem: of the race.
        """
        return nullcontext()

    def finished(self, model: Model) -> None:
        """No results.

        Args:
            model: one run of an optimizer.
        """

    def begun(self, model: Model) -> None:
        """No interrupted runs.

        Args:
            model: one run of an optimizer.
        """

    def keep(self, evaluation: Evaluation) -> None:
        """Do nothing.

        Args:
            evaluation: an evaluation.
        """

    def keep_begun(self, evaluation: Evaluation, *, now: bool = False) -> None:
        """Do nothing.

        Args:
            evaluation: an evaluation.
            now: is ignored.
        """


def _role(name: str, ending: str) -> str:
    """The role that an optimizer's file declares."""
    return f"{_KINDS[ending]} {name}"


def _sweep(content: dict[str, Any]) -> Sweep:
    """The sweep that `to_json` has encoded."""
    arrays = {key: from_json(content[key]) for key in _ARRAYS}
    tuples = {key: tuple(content.get(key, ())) for key in _TUPLES}
    return Sweep(**{**content, **arrays, **tuples})
