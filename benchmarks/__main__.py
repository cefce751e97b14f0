"""`python -m benchmarks [--quick] [--only PATTERN] [--json FILE]`."""

import argparse
import re
import sys
import time
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path

from . import floor, machine, report
from .measure import Field
from .plan import BARS, Cell, cells, thin
from .rows import Record, Row
from .trees import TINY, Tree, TREES


def main() -> None:
    """Measure and print; save if asked to."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="tiny trees, few rounds")
    parser.add_argument(
        "--only",
        metavar="PATTERN",
        default="",
        help=f"a regular expression, matched against '{next(cells()).label}' and so on",
    )
    parser.add_argument("--list", action="store_true", help="print these, and exit")
    parser.add_argument("--json", type=Path, metavar="FILE", help="file for results")
    args = parser.parse_args()
    chosen = [cell for cell in cells() if re.search(args.only, cell.label)]
    chosen = thin(chosen) if args.quick else chosen
    profiled = bool(re.search(args.only, floor.LABEL))
    if args.list:
        print(
            *(cell.label for cell in chosen), floor.LABEL if profiled else "", sep="\n"
        )
        return

    where, start = machine.describe(), time.perf_counter()
    trees = TINY if args.quick else TREES
    rows = list(measure(chosen, trees, quick=args.quick))
    if profiled:
        rows += floor.rows(trees["wide"], rounds=2 if args.quick else 15)
    where["took"] = f"{time.perf_counter() - start:.0f} s"
    used = {row.tree for row in rows}
    record = Record(
        machine=where,
        command="python -m benchmarks",
        trees={name: trees[name].describe() for name in trees if name in used},
        rows=rows,
        bars=BARS,
        quick=args.quick,
    )
    print(report.body({args.json.stem if args.json else "run": record}))
    if args.json:
        record.save(args.json)


def measure(
    chosen: Iterable[Cell], trees: dict[str, Tree], *, quick: bool
) -> Iterator[Row]:
    """All rows, tree by tree, so that only one tree is in memory at a time."""
    for name, group in groupby(chosen, key=lambda cell: cell.tree):
        field = Field(trees[name])
        for cell in group:
            start = time.perf_counter()
            rounds, seconds = (1, 0.0) if quick else (cell.rounds, cell.seconds)
            yield from field.rows(
                cell.kind, cell.section, cell.optimizer, cell.recipe, rounds, seconds
            )
            spent = time.perf_counter() - start
            print(f"{cell.label} ({spent:.1f} s)", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
