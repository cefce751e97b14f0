"""The results of a suite as JSON, saved after every program."""

import json
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from math import inf, isfinite
from pathlib import Path
from typing import Any

import jax
import numpy as np

import steepest

from .. import _disk
from .._arrays import digest
from .._race import machine
from ._members import Data, Result
from ._protocol import Entry, Request, Stages, Tuned
from ._size import Size

FORMAT = 2


@dataclass
class Ran:
    """A program: what was asked for, and how it ended."""

    stage: str
    steps: int
    members: list[list[int | float]]  # rate, decay, seed
    rest: list[float]
    nats: list[float | None]  # `None` for a run that diverged
    curves: list[list[float | None]]
    seconds: float

    @classmethod
    def of(cls, request: Request, result: Result) -> "Ran":
        """From a result.

        Args:
            request: what was asked for.
            result: how it ended.
        """
        return cls(
            request.stage,
            request.steps,
            [list(member) for member in request.members],
            list(request.rest),
            _finite(result.nats, 7),
            [_finite(curve, 5) for curve in result.curves],
            round(result.seconds, 4),
        )

    def answers(self, request: Request) -> bool:
        """Whether these are the runs that were asked for.

        Args:
            request: what was asked for.
        """
        asked = [list(member) for member in request.members]
        return (
            (self.stage, self.steps) == (request.stage, request.steps)
            and len(asked) == len(self.members)
            and np.allclose(asked, self.members, rtol=1e-9, atol=0)
            and np.allclose(self.rest, request.rest, rtol=1e-9, atol=0)
        )

    @property
    def losses(self) -> list[float]:
        """The final losses; infinite for runs that diverged."""
        return [inf if x is None else x for x in self.nats]


@dataclass
class ArmRecord:
    """All results of one arm."""

    program: str = ""  # digest of what was compiled
    ran: list[Ran] = field(default_factory=list)
    entry: dict[str, Any] | None = None  # when it is finished
    skipped: str = ""  # why it is not finished
    compile_seconds: float | None = None
    step_seconds: list[float] = field(default_factory=list)  # of all members together
    quiet: bool = False  # whether nothing was compiled while steps were timed
    state_bytes: int | None = None

    def finish(self, entry: Entry) -> None:
        """Keep what came of the tuning.

        Args:
            entry: of the protocol.
        """
        self.entry, self.skipped = asdict(entry), ""

    @property
    def tuned(self) -> Entry | None:
        """What came of the tuning; `None` if the arm is not finished."""
        if self.entry is None:
            return None
        numbers = self.entry["tuned"]
        tuned = None if numbers is None else Tuned(*numbers)
        return Entry(**{**self.entry, "tuned": tuned})

    def answer(self, request: Request) -> Ran | None:
        """The program that was asked for, if it ran.

        Args:
            request: what is asked for.
        """
        return next((ran for ran in self.ran if ran.answers(request)), None)

    def stage(self, name: str) -> Ran | None:
        """The program of a stage that has only one.

        Args:
            name: of the stage.
        """
        return next((ran for ran in self.ran if ran.stage == name), None)


def searched(
    requests: Stages, answer: Callable[[Request], Ran | None]
) -> tuple[list[Ran], Entry | None]:
    """The programs of a search, and what came of it; `None` if it was not finished.

    Args:
        requests: of the stages.
        answer: finds or runs a program; `None` ends the search.
    """
    used: list[Ran] = []
    try:
        request = next(requests)
        while (ran := answer(request)) is not None:
            used.append(ran)
            request = requests.send(ran.losses)
    except StopIteration as stop:
        return used, stop.value
    return used, None


@dataclass
class Record:
    """All results of a suite."""

    size: dict[str, Any]
    fingerprint: dict[str, str]
    machine: str
    python: str
    params: int = 0
    train_bytes: int = 0
    held_out_bytes: int = 0
    seconds: float = 0.0  # of all calls together
    note: str = ""  # a sentence for the page
    arms: dict[str, ArmRecord] = field(default_factory=dict)
    format: int = FORMAT

    def save(self, path: Path) -> None:
        """Write the file; an interruption leaves the old one.

        Args:
            path: of the file.
        """
        _disk.make_folder(path.parent)
        _disk.write(path, [as_text(asdict(self)).encode()])

    @classmethod
    def load(cls, path: Path) -> "Record":
        """Read a file.

        Args:
            path: of the file.
        """
        fields = json.loads(path.read_text("utf-8"))
        if fields.get("format") != FORMAT:
            raise ValueError(
                f"suite: {path} has format {fields.get('format')}, expected {FORMAT}. "
                "Run the suite again, without `--resume`."
            )
        fields["fingerprint"].pop("more_seeds", None)  # in older files
        arms = {
            name: ArmRecord(**{**arm, "ran": [Ran(**ran) for ran in arm["ran"]]})
            for name, arm in fields.pop("arms").items()
        }
        return cls(**fields, arms=arms)


def new_record(size: Size, data: Data) -> Record:
    """A record without results.

    Args:
        size: of the suite.
        data: the text.
    """
    return Record(
        size.as_dict(), fingerprint(size, data), machine(), platform.python_version()
    )


def fingerprint(size: Size, data: Data) -> dict[str, str]:
    """What the numbers of all arms depend on.

    Args:
        size: of the suite.
        data: the text.
    """
    device = jax.local_devices()[0]
    texts = " ".join(f"{name} {digest(x)}" for name, x in sorted(data.items()))
    numbers = size.as_dict()
    del numbers["more_seeds"]  # they add runs, and change none of the others
    return {
        **{name: str(x) for name, x in numbers.items()},
        "text": sha256(texts.encode()).hexdigest()[:32],
        "device": f"{device.platform} {device.device_kind}",
        "version of JAX": jax.__version__,
        "version of steepest": steepest.__version__,
    }


def as_text(fields: Mapping[str, Any]) -> str:
    """JSON with one line for each list of numbers.

    Args:
        fields: of a record.
    """
    return f"{_lines(fields, 0)}\n"


def _lines(x: Any, depth: int) -> str:
    """Dicts and lists of dicts are broken into lines, all else is not."""
    pad, end = " " * (depth + 1), " " * depth
    if isinstance(x, Mapping) and x:
        rows = [
            f"{pad}{json.dumps(key)}: {_lines(y, depth + 1)}" for key, y in x.items()
        ]
        return "{\n" + ",\n".join(rows) + f"\n{end}}}"
    if isinstance(x, list) and x and isinstance(x[0], Mapping):
        rows = [f"{pad}{_lines(y, depth + 1)}" for y in x]
        return "[\n" + ",\n".join(rows) + f"\n{end}]"
    return json.dumps(x)


def _finite(numbers: Sequence[float], digits: int) -> list[float | None]:
    """Rounded, with `None` for what JSON has no number for."""
    return [round(x, digits) if isfinite(x) else None for x in numbers]
