"""A disk that fails or is killed at one operation, and a race without training."""

import errno
import fcntl
import os
from contextlib import contextmanager, suppress
from functools import cache, partial
from types import SimpleNamespace
from unittest.mock import patch

import jax
import numpy as np

from steepest.race import _disk, _fingerprint, _race, _store, Problem, race
from steepest.race._sweep import Evaluation
from steepest.race.report import _report, _results, write_report

PROBLEM = Problem(
    init=lambda key: jax.random.normal(key, (3,)),
    loss=lambda x, _: x @ x,
    name="quadratic",
    steps=3,
    seeds=2,
    learning_rates=(0.01, 0.1),
    optimizers=("sgd", "adam"),
)
OPERATIONS = "open read write close fsync fstat lstat listdir mkdir replace unlink"
OPERATIONS = (*OPERATIONS.split(), "flock")
GROWING = (
    "mkdir",
    "open",
    "write",
    "fsync",
    "close",
    "replace",
)  # operations that fail on a full disk
FAULTS = {
    "kill": OPERATIONS,  # half of a write is done
    "disk full": GROWING,  # the same, and the disk stays full
    "I/O error": OPERATIONS,
    "permission": OPERATIONS,
    "short": ("read", "write"),  # half of the requested bytes, without an error
}
_NUMBERS = {"disk full": errno.ENOSPC, "I/O error": errno.EIO}


class Killed(BaseException):
    """Simulates `kill -9`: nothing catches it, and nothing runs after it."""


class Disk:
    """Replaces `os` and `fcntl` in the race.

    Args:
        at: which operation fails; none by default.
        fault: how it fails.
        die: what a kill does.
    """

    def __init__(self, at=-1, fault="kill", die=None):
        self.at, self.fault, self.die = at, fault, die or self._die
        self.asked = []  # the names of the operations
        self.files = set()
        self.dead = self.full = False

    def __getattr__(self, name):
        real = getattr(fcntl if hasattr(fcntl, name) else os, name)
        return partial(self._do, name, real) if name in OPERATIONS else real

    def _do(self, name, real, *args):
        if self.dead:
            raise Killed
        here = len(self.asked) == self.at
        self.asked.append(name)
        if here and self.fault == "short" and name in FAULTS["short"]:
            return self._half(name, real, *args)
        if here and self.fault != "short":
            self._fail(name, real, *args)
        if self.full and name in ("mkdir", "write", "fsync"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        if name == "fsync":
            return None  # it takes time, but has no visible effect
        result = real(*args)
        if name == "open":
            self.files.add(result)
        elif name == "close":
            self.files.discard(args[0])
        return result

    def _half(self, name, real, file, what):
        half = what // 2 if name == "read" else what[: len(what) // 2]
        return real(file, max(half, 1) if name == "read" else half or what)

    def _fail(self, name, real, *args):
        if name == "write":
            self._half(name, real, *args)
        if self.fault == "kill":
            self.die()
        if name == "close":  # it is closed anyway
            real(*args)
            self.files.discard(args[0])
        self.full = self.fault == "disk full"
        number = _NUMBERS.get(self.fault, errno.EACCES)
        raise OSError(number, os.strerror(number))

    def _die(self):
        """A process that ends releases its files and locks."""
        self.dead = True
        for file in self.files:
            with suppress(OSError):
                os.close(file)
        raise Killed


@contextmanager
def on(disk):
    """The race uses this disk."""
    with patch.object(_disk, "os", disk), patch.object(_disk, "fcntl", disk):
        yield disk


class Remembered(Evaluation):
    """An evaluation that was recorded before."""

    def __init__(self, sweep, program, begun):
        for key, x in {"sweep": sweep, "program": program, "saved": begun}.items():
            object.__setattr__(self, key, x)

    def begun(self):
        """The state that was saved then."""
        return self.saved


def _recorded():
    """All evaluations of a race that is actually run, by optimizer."""
    taken = {}

    def evaluations(program, begun=None):
        for evaluation in _real_evaluations(program, begun):
            kept = (evaluation.sweep, evaluation.begun())
            taken.setdefault(evaluation.sweep.name, []).append(kept)
            yield evaluation

    with patch.object(_race, "evaluations", evaluations):
        race(PROBLEM)
    return taken


_real_evaluations = _race.evaluations
_clock = SimpleNamespace(monotonic=iter(range(0, 10**12, 1000)).__next__)


@contextmanager
def without_training():
    """Races use recorded evaluations, and save at every one of them.

    If a race resumes from other numbers than were saved, its losses show it.
    """
    taken = _recorded()
    kept = {}

    def evaluations(program, begun=None):
        name, done = program.model.entrant.name, 0
        if begun is not None:
            done = begun.sweep.steps[-1]
            then = taken[name][done - 1][1]
            same = all(map(np.array_equal, begun.saved, then.saved))
            assert same and len(begun.saved) == len(then.saved)
        for sweep, saved in taken[name][done:]:
            yield Remembered(sweep, program, saved)

    def common(problem, settings):
        key = (problem.name, settings)
        if key not in kept:
            kept[key] = _fingerprint.race_fingerprint(problem, settings)
        return kept[key]

    def own(model):
        name = model.entrant.name
        if name not in kept:
            kept[name] = _fingerprint.optimizer_fingerprint(model)
        return kept[name]

    program = lambda model, *rest: SimpleNamespace(model=model)
    with (
        patch.object(_race, "evaluations", evaluations),
        patch.object(_race, "_program", program),
        patch.object(_race, "checked", lambda problem: problem),
        patch.object(_race, "entrant", cache(_race.entrant)),
        patch.object(_race, "randomness", cache(_race.randomness)),
        patch.object(_race, "time", _clock),
        patch.object(_store, "time", _clock),
        patch.object(_store, "race_fingerprint", common),
        patch.object(_store, "optimizer_fingerprint", own),
        patch.object(_results, "standing_records", lambda outcome: []),
        patch.object(_results, "recommendation", lambda outcome: None),
        patch.object(_report, "page", lambda outcome: "a page\n"),
        patch.object(_report, "pictures", lambda outcome: {"loss": "a picture\n"}),
    ):
        yield


def raced(folder, disk=None, **how):
    """Race in a folder, or resume there: the final content of `results.json`."""
    resume = folder.exists()
    with on(disk or Disk()):
        write_report(race(PROBLEM, folder=folder, resume=resume, **how), folder)
    return (folder / "results.json").read_text()


def outcome(attempt, expected):
    """How an attempt ends: equal, refused with a message, killed, or wrong, and why."""
    try:
        result = attempt()
    except Killed:
        return "killed", ""
    except (ValueError, OSError) as error:
        message = str(error)
        good = (
            message.startswith("race: ")
            and "\n" not in message
            and message.endswith(".")
        )
        return ("refused" if good else "WRONG"), message
    except Exception as error:
        return "WRONG", f"{type(error).__name__}: {error}"
    return ("equal", "") if result == expected else ("WRONG", "other numbers")
