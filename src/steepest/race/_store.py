"""A race on disk: every finished run at once, and what an unfinished one goes on with.

race.json            what is raced
runs/adamw.json      an optimizer that is done
runs/muon.begun      one that is not, and what its runs go on with

Every file says which race it is of, and what its numbers depend on. A file of another
race, or of other code, data, rates, seeds or steps, is refused.
"""

import hashlib
import re
import secrets
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from . import _disk
from ._files import from_json, read_sealed, to_json, write_sealed
from ._fingerprint import (
    differences,
    Fingerprint,
    OPTIMIZER,
    optimizer_fingerprint,
    race_fingerprint,
)
from ._model import Model
from ._outcome import Sweep
from ._problem import Problem
from ._settings import Settings
from ._sweep import Begun, Look

_ARRAYS = "loss", "metric"
_TUPLES = "rates", "seeds", "steps", "seconds"
_SELDOM = 20  # saving may take a twentieth of the time
_LOCK = ".lock"
_SETTINGS = "the settings of a race"
_KINDS = {"json": "all runs of", "begun": "unfinished runs of"}  # by ending


class Store:
    """The folder of one race.

    Args:
        folder: where it is, or is to be.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._manifest, self._runs = folder / "race.json", folder / "runs"
        self._again = 0.0  # when to save next
        self._id: str | None = None  # of the race
        self._common: Fingerprint = {}  # what all its files have in common
        self._own: dict[str, str] = {}  # the fingerprint of each optimizer

    def settings(self, resume: bool) -> dict[str, Any]:
        """What is raced in the folder, if that is to go on; nothing if it is new.

        Args:
            resume: whether to go on. If not, a folder with something in it is refused.
        """
        if resume and not _disk.exists(self.folder):
            raise ValueError(
                f"race: there is no folder {self.folder}, and so no race to go on "
                "with. Leave `resume` out to begin one."
            )
        if not _disk.exists(self._manifest):
            if not self._only_debris():
                raise ValueError(
                    f"race: {self.folder} has something else than a race in it, and "
                    "was left as it is. Race in another folder."
                )
            return {}
        if not resume:
            raise ValueError(
                f"race: there is a race in {self.folder} already. Resume it, or race "
                "in another folder."
            )
        content = self._read(self._manifest, _SETTINGS)[0]
        self._id = content["race"]
        return content["settings"]

    @contextmanager
    def open(self, settings: Settings, problem: Problem) -> Iterator[None]:
        """Make the folder, say what is raced, and let no other process race there.

        Args:
            settings: what is raced.
            problem: what is trained.
        """
        self._common = race_fingerprint(problem, settings)
        _disk.make_folder(self._runs)
        _disk.check_folder(self._runs)
        with _disk.locked(self._runs / _LOCK) as alone:
            if not alone:
                raise ValueError(
                    f"race: another process is racing in {self.folder}. Wait for it, "
                    "or race in another folder."
                )
            self._check_unchanged()
            self._clean()
            for name in settings.optimizers:  # refused before anything runs
                if self._find(name, "json") is None:
                    self._find(name, "begun")
            about = {"settings": asdict(settings), "fingerprint": self._common}
            self._write(self._manifest, _SETTINGS, about)
            yield

    def finished(self, model: Model) -> Sweep | None:
        """An optimizer's runs, if all are done.

        Args:
            model: a run of it.
        """
        name = model.entrant.name
        found = self._find(name, "json", model)
        return None if found is None else _sweep(found[0]["sweep"])

    def begun(self, model: Model) -> Begun | None:
        """An optimizer's runs, if they were stopped on their way.

        Args:
            model: a run of it.
        """
        name = model.entrant.name
        found = self._find(name, "begun", model)
        if found is None:
            return None
        content, data = found
        sweep = _sweep(content["sweep"])
        ends = np.cumsum(content["sizes"], dtype=int)[:-1]
        saved = np.split(np.frombuffer(data, np.uint8), ends)
        return Begun(sweep, saved)

    def keep(self, look: Look) -> None:
        """Write an optimizer's runs, which are done.

        Args:
            look: the last one at them.
        """
        name = look.sweep.name
        about = {"sweep": to_json(look.sweep), **self._fingerprint(look.program.model)}
        self._write(self._path(name, "json"), _role(name, "json"), about)
        _disk.remove(self._path(name, "begun"))
        self._again = 0.0

    def keep_begun(self, look: Look, *, now: bool = False) -> None:
        """Write what an optimizer's runs go on with, if that is worth its time.

        Args:
            look: what is seen of them.
            now: whether to do it in any case.
        """
        start = time.monotonic()
        if start < self._again and not now:
            return
        begun, name = look.begun(), look.sweep.name
        about = {
            "sizes": [x.size for x in begun.saved],
            "sweep": to_json(begun.sweep),
            **self._fingerprint(look.program.model),
        }
        path, role = self._path(name, "begun"), _role(name, "begun")
        self._write(path, role, about, begun.saved)
        end = time.monotonic()
        self._again = end + max(1.0, _SELDOM * (end - start))

    def _fingerprint(self, model: Model) -> dict[str, Fingerprint]:
        """What an optimizer's numbers depend on. It is traced once."""
        name = model.entrant.name
        if name not in self._own:
            self._own[name] = optimizer_fingerprint(model)
        return {"fingerprint": {**self._common, OPTIMIZER: self._own[name]}}

    def _find(self, name: str, ending: str, model: Model | None = None) -> Any:
        """The content of an optimizer's file and its bytes, if it is there and ours.

        Without a model, its program is not compared.
        """
        path = self._path(name, ending)
        if not _disk.exists(path):
            return None
        content, data = self._read(path, _role(name, ending))
        if content["race"] != self._id:
            raise _disk.left_alone(path, "is of another race")
        then, now = dict(content["fingerprint"]), self._common
        if model is None:
            then.pop(OPTIMIZER, None)
        else:
            now = self._fingerprint(model)["fingerprint"]
        _compare(path, then, now)
        return content, data

    def _read(self, path: Path, role: str) -> tuple[dict[str, Any], memoryview]:
        """A file of a race, if it stands where it was written."""
        content, data = read_sealed(path)
        if content["role"] != role:
            raise _disk.left_alone(
                path, f"has {content['role']} in it, expected {role}"
            )
        return content, data

    def _write(self, path: Path, role: str, about: Any, saved: Any = ()) -> None:
        write_sealed(path, {"role": role, "race": self._id, **about}, saved)

    def _check_unchanged(self) -> None:
        """Whether the race is still the one that `settings` has seen."""
        found = None
        if _disk.exists(self._manifest):
            content = self._read(self._manifest, _SETTINGS)[0]
            found = content["race"]
            if found == self._id:
                _compare(self._manifest, content["fingerprint"], self._common)
        if found != self._id:
            raise ValueError(
                f"race: another process has begun a race in {self.folder}. Resume it, "
                "or race in another folder."
            )
        self._id = self._id or secrets.token_hex(8)

    def _only_debris(self) -> bool:
        """Whether all in the folder is what a race leaves that was killed at once."""
        rest = {x for x in _disk.names(self.folder) if not _disk.is_temporary(x)}
        if not rest:
            return True
        if rest != {self._runs.name} or not _disk.is_folder(self._runs):
            return False
        inside = _disk.names(self._runs)
        return all(_disk.is_temporary(x) or x == _LOCK for x in inside)

    def _clean(self) -> None:
        """Remove the files that a killed race had not finished."""
        for folder in (self.folder, self._runs):
            for name in filter(_disk.is_temporary, _disk.names(folder)):
                _disk.remove(folder / name)

    def _path(self, name: str, ending: str) -> Path:
        """Where an optimizer's runs are: readable, and of no other's."""
        slug = re.sub("[^a-z0-9_]+", "-", name.lower()).strip("-")[:40]
        if slug != name:
            slug = f"{slug}-{hashlib.sha256(name.encode()).hexdigest()[:6]}"
        return self._runs / f"{slug}.{ending}"


class Nowhere:
    """What stands for the folder of a race that is not kept."""

    def settings(self, resume: bool) -> dict[str, Any]:
        """Nothing; refused if that is to go on.

        Args:
            resume: whether to go on.
        """
        if resume:
            raise ValueError("race: `resume` is wanted, and no `folder` is given.")
        return {}

    def open(
        self, settings: Settings, problem: Problem
    ) -> AbstractContextManager[None]:
        """Nothing to make.

        Args:
            settings: what is raced.
            problem: what is trained.
        """
        return nullcontext()

    def finished(self, model: Model) -> None:
        """Nothing is.

        Args:
            model: a run of an optimizer.
        """

    def begun(self, model: Model) -> None:
        """Nothing is.

        Args:
            model: a run of an optimizer.
        """

    def keep(self, look: Look) -> None:
        """Nothing is kept.

        Args:
            look: what is seen of some runs.
        """

    def keep_begun(self, look: Look, *, now: bool = False) -> None:
        """Nothing is kept.

        Args:
            look: what is seen of some runs.
            now: in any case.
        """


def _role(name: str, ending: str) -> str:
    """What a file of an optimizer says it is."""
    return f"{_KINDS[ending]} {name}"


def _compare(path: Path, then: Fingerprint, now: Fingerprint) -> None:
    """Refuse what other code, data or settings have written."""
    changed = differences(then, now)
    if changed:
        raise ValueError(
            f"race: cannot resume: since {path} was written, this has changed: "
            f"{', '.join(changed)}. Results from before and after must not stand in "
            "one table. Undo the change, or race in another folder."
        )


def _sweep(content: dict[str, Any]) -> Sweep:
    """What `to_json` has made of the runs of an optimizer."""
    arrays = {key: from_json(content[key]) for key in _ARRAYS}
    tuples = {key: tuple(content[key]) for key in _TUPLES}
    return Sweep(**{**content, **arrays, **tuples})
