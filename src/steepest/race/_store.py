"""A race on disk: every finished run at once, and what an unfinished one goes on with.

race.json            what is raced
runs/adamw.json      an optimizer that is done
runs/muon.begun      one that is not, and what its runs go on with
"""

import hashlib
import io
import json
import re
import time
import zipfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from ._files import from_json, read_sealed, refused, to_json, write_sealed, write_whole
from ._outcome import Sweep
from ._sweep import Begun, Look

try:
    import fcntl
except ImportError:  # Windows has no such locks
    fcntl = None

_ARRAYS = "loss", "metric"
_TUPLES = "rates", "seeds", "steps", "seconds"
_SELDOM = 20  # saving may take a twentieth of the time


class Store:
    """The folder of one race.

    Args:
        folder: where it is, or is to be.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._manifest, self._runs = folder / "race.json", folder / "runs"
        self._again = 0.0  # when to save next

    def settings(self, resume: bool) -> dict[str, Any]:
        """What is raced in the folder, if that is to go on; nothing if it is new.

        Args:
            resume: whether to go on. If not, a folder with something in it is refused.
        """
        if resume and not self.folder.exists():
            raise ValueError(
                f"race: there is no folder {self.folder}, and so no race to go on "
                "with. Leave `resume` out to begin one."
            )
        if not self.folder.exists() or not any(self.folder.iterdir()):
            return {}
        if not self._manifest.exists():
            raise ValueError(
                f"race: {self.folder} has something else than a race in it, and was "
                "left as it is. Race in another folder."
            )
        if not resume:
            raise ValueError(
                f"race: there is a race in {self.folder} already. Resume it, or race "
                "in another folder."
            )
        return read_sealed(self._manifest)

    @contextmanager
    def open(self, settings: dict[str, Any]) -> Iterator[None]:
        """Make the folder, say what is raced, and let no other process race there.

        Args:
            settings: what is raced.
        """
        self._runs.mkdir(parents=True, exist_ok=True)
        with (self._runs / ".lock").open("w") as lock:
            try:
                if fcntl is not None:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise ValueError(
                    f"race: another process is racing in {self.folder}. Wait for it, "
                    "or race in another folder."
                ) from None
            write_sealed(self._manifest, settings)
            yield

    def finished(self, name: str) -> Sweep | None:
        """An optimizer's runs, if all are done.

        Args:
            name: the optimizer.
        """
        path = self._path(name, "json")
        return _sweep(path, read_sealed(path), name) if path.exists() else None

    def begun(self, name: str) -> Begun | None:
        """An optimizer's runs, if they were stopped on their way.

        Args:
            name: the optimizer.
        """
        path = self._path(name, "begun")
        return _begun(path, name) if path.exists() else None

    def keep(self, sweep: Sweep) -> None:
        """Write an optimizer's runs, which are done.

        Args:
            sweep: all of them.
        """
        write_sealed(self._path(sweep.name, "json"), to_json(sweep))
        self._path(sweep.name, "begun").unlink(missing_ok=True)
        self._again = 0.0

    def keep_begun(self, look: Look, *, now: bool = False) -> None:
        """Write what an optimizer's runs go on with, if that is worth its time.

        Args:
            look: what is seen of them.
            now: whether to do it in any case.
        """
        began = time.monotonic()
        if began < self._again and not now:
            return
        begun = look.begun()
        told = {"fingerprint": begun.fingerprint, **to_json(begun.sweep)}
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr("told.json", json.dumps(told, allow_nan=False))
            for k, x in enumerate(begun.saved):
                archive.writestr(f"{k}", x.tobytes())
        write_whole(self._path(begun.sweep.name, "begun"), file.getvalue())
        ended = time.monotonic()
        self._again = ended + max(1.0, _SELDOM * (ended - began))

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

    def open(self, settings: dict[str, Any]) -> AbstractContextManager[None]:
        """Nothing to make.

        Args:
            settings: what is raced.
        """
        return nullcontext()

    def finished(self, name: str) -> None:
        """Nothing is.

        Args:
            name: the optimizer.
        """

    def begun(self, name: str) -> None:
        """Nothing is.

        Args:
            name: the optimizer.
        """

    def keep(self, sweep: Sweep) -> None:
        """Nothing is kept.

        Args:
            sweep: all runs of an optimizer.
        """

    def keep_begun(self, look: Look, *, now: bool = False) -> None:
        """Nothing is kept.

        Args:
            look: what is seen of some runs.
            now: in any case.
        """


def _sweep(path: Path, content: dict[str, Any], name: str) -> Sweep:
    try:
        arrays = {key: from_json(content[key]) for key in _ARRAYS}
        tuples = {key: tuple(content[key]) for key in _TUPLES}
        sweep = Sweep(**{**content, **arrays, **tuples})
    except (KeyError, TypeError, ValueError) as error:
        raise refused(path, f"has not what a race writes ({error})") from None
    if sweep.name != name:
        raise refused(path, f"is of {sweep.name}, and not of {name}")
    return sweep


def _begun(path: Path, name: str) -> Begun:
    try:
        with zipfile.ZipFile(path) as archive:  # it checks a sum of each part
            told = json.loads(archive.read("told.json"))
            parts = range(len(archive.namelist()) - 1)
            saved = [np.frombuffer(archive.read(f"{k}"), np.uint8) for k in parts]
            fingerprint = told.pop("fingerprint")
    except (zipfile.BadZipFile, KeyError, ValueError, AttributeError) as error:
        raise refused(path, f"is damaged, or no file of a race ({error})") from None
    return Begun(_sweep(path, told, name), fingerprint, saved)
