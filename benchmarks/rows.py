"""What a run leaves: the raw numbers, and what they say.

A file of `benchmarks/results` is one run on one machine, `Record` as JSON:

    {"machine": {"device": ..., "date": ..., "jax": ..., ...},   shown as it stands
     "command": "python -m benchmarks",                          what made it
     "quick": false,                                             true: says nothing
     "trees": {"wide": {"says": ..., "leaves": 148, "params": 42286080}, ...},
     "rows": [{"section": "step", "tree": "wide", "optimizer": "adamw",
               "quantity": "step", "unit": "s",
               "times": {"steepest": [...], "optax": [...], "copy": [...]},
               "note": ""}, ...],
     "bars": [{"tree": "wide", "optimizer": "*", "quantity": "step",
               "against": "optax", "least": 0.95}, ...]}

`times` has a number for each round, and the k-th numbers of all contenders belong
together. Contenders are `steepest`, libraries (`optax`, `torch`, ...), and `copy`, a
plain `a + b` into `a` on the same machine; a row needs none but `steepest`. Units are
"s" and "B", where less is better, and "B/s", where more is. A ratio is always so that
above 1 steepest is ahead. The names of a bar are patterns, as for files; it is met if
every row it matches has at least that ratio. Verdicts are not kept: they follow.
"""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from statistics import quantiles
from typing import Any

OURS, COPY = "steepest", "copy"
PAGE = 4096  # bytes: fewer are a counter here or there, and make no difference


@dataclass(frozen=True)
class Row:
    """One quantity of one optimizer on one tree, out of all contenders."""

    section: str
    tree: str
    optimizer: str
    quantity: str
    unit: str
    times: dict[str, list[float]]
    note: str = ""

    @property
    def others(self) -> list[str]:
        """The contenders but for steepest."""
        return [who for who in self.times if who != OURS]

    @property
    def rounds(self) -> int:
        """How many numbers of steepest there are."""
        return len(self.times[OURS])

    def best(self, who: str) -> float:
        """The best of all rounds of one contender."""
        return (max if self.unit == "B/s" else min)(self.times[who])

    def ratio(self, against: str) -> float:
        """Best against best: above 1 steepest is ahead."""
        return self._ahead(self.best(OURS), self.best(against))

    def spread(self, against: str) -> tuple[float, float]:
        """The middle half of the ratios, taken round by round."""
        pairs = zip(self.times[OURS], self.times[against], strict=False)
        ratios = [self._ahead(ours, theirs) for ours, theirs in pairs]
        if len(ratios) == 1:
            return ratios[0], ratios[0]
        low, _, high = quantiles(ratios, method="inclusive")
        return low, high

    def reaches(self, against: str, least: float) -> bool:
        """Whether the spread, where there is one, goes up to a ratio."""
        return self.spread(against)[1] >= least

    def _ahead(self, ours: float, theirs: float) -> float:
        if self.unit == "B/s":
            ours, theirs = theirs, ours
        if self.unit == "B" and abs(ours - theirs) < PAGE:
            return 1.0
        return theirs / ours if ours else float("inf")


@dataclass(frozen=True)
class Bar:
    """What the project asks of some rows."""

    tree: str
    optimizer: str
    quantity: str
    against: str
    least: float

    def rows(self, rows: Iterable[Row]) -> list[Row]:
        """Those it is about, the worst first."""
        found = [
            row
            for row in rows
            if fnmatchcase(row.tree, self.tree)
            and fnmatchcase(row.optimizer, self.optimizer)
            and row.quantity == self.quantity
            and self.against in row.times
        ]
        return sorted(found, key=lambda row: row.ratio(self.against))

    def verdict(self, rows: Iterable[Row]) -> str:
        """`met`, `short`, or why it is neither."""
        found = self.rows(rows)
        below = [row for row in found if row.ratio(self.against) < self.least]
        if not found:
            return "not measured"
        if not below:
            return "met"
        if all(row.reaches(self.against, self.least) for row in below):
            return "short, within the spread"
        return "short"


@dataclass
class Record:
    """One run on one machine."""

    machine: dict[str, str]
    command: str
    trees: dict[str, dict[str, Any]] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)
    bars: list[Bar] = field(default_factory=list)
    quick: bool = False

    def save(self, path: Path) -> None:
        """One line a row: a change of a number is then a change of a line."""
        raw = asdict(self)
        lists = {name: raw.pop(name) for name in ("rows", "bars")}
        for row in lists["rows"]:
            row["times"] = {who: _short(xs) for who, xs in row["times"].items()}
        head = json.dumps(raw, indent=1).removesuffix("\n}")
        body = [
            f' "{name}": [\n  ' + ",\n  ".join(map(json.dumps, items)) + "\n ]"
            for name, items in lists.items()
        ]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(",\n".join([head, *body]) + "\n}\n")

    @classmethod
    def load(cls, path: Path) -> "Record":
        """What `save` has written."""
        raw = json.loads(path.read_text())
        rows = [Row(**row) for row in raw.pop("rows")]
        bars = [Bar(**bar) for bar in raw.pop("bars")]
        return cls(rows=rows, bars=bars, **raw)


def _short(numbers: Iterable[float]) -> list[float]:
    """Five digits: no clock has more."""
    return [x if isinstance(x, int) else float(f"{x:.5g}") for x in numbers]
