"""`python -m benchmarks [--quick] [--json FILE]`."""

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path

from . import machine, table
from .measure import Deep, Wide
from .optimizers import RECIPES
from .rows import BARS, Row, Traffic
from .trees import GPT

DEEP = GPT("deep", layers=48, width=32, vocabulary=256, context=64)
WIDE = GPT("wide", layers=12, width=512, vocabulary=8192, context=512)

TINY_DEEP = GPT("deep", layers=1, width=8, vocabulary=8, context=8)
TINY_WIDE = GPT("wide", layers=1, width=16, vocabulary=16, context=16)

LEGEND = """\
ratio: best of Optax over best of steepest; above 1 steepest is ahead.
spread: the middle half of the ratios, round by round. Clocks run without the garbage
  collector.
trace, lower, compile: of update and apply, with a learning rate never used before, and
  for trace and lower with all of JAX's caches cleared; trace again: of a second, equal
  transformation.
eager: outside jit. step: update and apply, compiled, params and state donated.
step, undonated: the same against Optax's step as its examples write it, not donated."""


def main() -> None:
    """Measure, then print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="tiny trees, few rounds")
    parser.add_argument("--json", type=Path, metavar="FILE", help="the raw numbers too")
    args = parser.parse_args()

    where = machine.describe()
    deep, wide = (TINY_DEEP, TINY_WIDE) if args.quick else (DEEP, WIDE)
    rows, traffic = measure(deep, wide, quick=args.quick)

    print("\n".join(f"{name:9} {what}" for name, what in where.items()), end="\n\n")
    print(deep, wide, LEGEND, sep="\n", end="\n\n")
    print(table.of_rows(rows), end="\n\n")
    print("What the step on the wide tree must at least move, over the time it took:")
    print(table.of_traffic(traffic), end="\n\n")
    if args.quick:
        print("The bars are for the full trees: run without --quick.")
    else:
        print("The bars of the project:")
        print(table.of_bars(BARS, rows))
    if args.json:
        raw = {
            "machine": where,
            "rows": [asdict(row) for row in rows],
            "traffic": [asdict(row) for row in traffic],
        }
        args.json.write_text(json.dumps(raw, indent=1) + "\n")


def measure(deep: GPT, wide: GPT, *, quick: bool) -> tuple[list[Row], list[Traffic]]:
    """Every recipe on both trees, in about four minutes on two cores, or seconds."""
    rows, traffic = [], []
    small, large = Deep(deep), Wide(wide)
    for name, recipe in RECIPES.items():
        print(f"{name}: the deep tree ...", file=sys.stderr)
        repeats, compiles = (2, 1) if quick else (7, 2)
        rows += small.rows(name, recipe, repeats, compiles)
    for name, recipe in RECIPES.items():
        print(f"{name}: the wide tree ...", file=sys.stderr)
        found, flow = large.rows(name, recipe, 3 if quick else 21)
        rows += found
        traffic.append(flow)
    return rows, traffic


if __name__ == "__main__":
    main()
