"""The results of a run: the raw numbers, and ratios and verdicts computed from them.

A file in `benchmarks/results` is one run on one machine, a `Record` as JSON:

    {"machine": {"device": ..., "date": ..., "jax": ..., ...},   shown unchanged
     "command": "python -m benchmarks",                          its command
     "quick": false,                                             true: meaningless
     "trees": {"wide": {"says": ..., "leaves": 148, "params": 42286080}, ...},
     "rows": [{"section": "step", "tree": "wide", "optimizer": "adamw",
               "quantity": "step", "unit": "s",
               "times": {"steepest": [...], "optax": [...], "copy": [...]},
               "note": ""}, ...],
     "bars": [{"tree": "wide", "optimizer": "*", "quantity": "step",
               "against": "optax", "least": 0.95}, ...]}

`times` has one number per round; the k-th numbers of all contenders were measured
together. Contenders are `steepest`, libraries (`optax`, `torch`, ...), and `copy`, a
plain `a + b` into `a` on the same machine; a row needs only `steepest`. Units are "s"
and "B", where less is better, and "B/s", where more is better. A ratio above 1 always
means that steepest is ahead. A bar is a target: its names are glob patterns, and it is
met if every row that matches has at least the given ratio. Verdicts are not stored;
they are computed from the rows.
"""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from statistics import quantiles
from typing import Any

OURS, COPY = "steepest", "copy"
PAGE = 4096  # bytes: smaller differences are a counter or two, and do not matter


@dataclass(frozen=True)
class Row:
    """One quantity of one optimizer on one tree, for all contenders."""

    section: str
    tree: str
    optimizer: str
    quantity: str
    unit: str
    times: dict[str, list[float]]
    note: str = ""

    @property
    def others(self) -> list[str]:
        """All contenders except steepest."""
        return [who for who in self.times if who != OURS]

    @property
    def rounds(self) -> int:
        """The number of measurements of steepest."""
        return len(self.times[OURS])

    def best(self, who: str) -> float:
        """The best round of one contender."""
        return (max if self.unit == "B/s" else min)(self.times[who])

    def ratio(self, against: str) -> float:
        """Best against best: above 1, steepest is ahead."""
        return self._ahead(self.best(OURS), self.best(against))

    def spread(self, against: str) -> tuple[float, float]:
        """The middle half of the ratios of the single rounds."""
        pairs = zip(self.times[OURS], self.times[against], strict=False)
        ratios = [self._ahead(ours, theirs) for ours, theirs in pairs]
        if len(ratios) == 1:
            return ratios[0], ratios[0]
        low, _, high = quantiles(ratios, method="inclusive")
        return low, high

    def reaches(self, against: str, least: float) -> bool:
        """Whether the spread, if there is one, reaches a ratio."""
        return self.spread(against)[1] >= least

    def _ahead(self, ours: float, theirs: float) -> float:
        if self.unit == "B/s":
            ours, theirs = theirs, ours
        if self.unit == "B" and abs(ours - theirs) < PAGE:
            return 1.0
        return theirs / ours if ours else float("inf")


@dataclass(frozen=True)
class Bar:
    """A target for some rows."""

    tree: str
    optimizer: str
    quantity: str
    against: str
    least: float

    def rows(self, rows: Iterable[Row]) -> list[Row]:
        """The rows it applies to, worst first."""
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
        """`met`, `missed`, or why it is neither."""
        found = self.rows(rows)
        below = [row for row in found if row.ratio(self.against) < self.least]
        if not found:
            return "not measured"
        if not below:
            return "met"
        if all(row.reaches(self.against, self.least) for row in below):
            return "missed, within the spread"
        return "missed"


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
        """Write one line per row, so that a diff shows which numbers changed."""
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
        """Read what `save` has written."""
        raw = json.loads(path.read_text())
        rows = [Row(**row) for row in raw.pop("rows")]
        bars = [Bar(**bar) for bar in raw.pop("bars")]
        return cls(rows=rows, bars=bars, **raw)


def _short(numbers: Iterable[float]) -> list[float]:
    """Round to five digits: no clock is more precise."""
    return [x if isinstance(x, int) else float(f"{x:.5g}") for x in numbers]
