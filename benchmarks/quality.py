"""The quality suite without the command line: `python -m benchmarks.quality run`.

It needs only JAX, NumPy and jaxtyping; Optax takes part if it is installed.

    python -m benchmarks.quality calibrate --size full --cache FOLDER
    python -m benchmarks.quality run --json FILE --time-budget 540 --cache FOLDER
    python -m benchmarks.quality run --json FILE --time-budget 540 --resume --partly
    python -m benchmarks.quality page        # docs/quality.md, from the saved results

`--cache` keeps compiled programs for later calls on the same machine.
"""

import argparse
import json
import os
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import jax

from steepest.race.suite import arms_named, calibrate, Record, run_suite, SIZES

DOCS = Path(__file__).parent.parent / "docs"
# The size of each file in `benchmarks/results`, in the order of the page.
RESULTS = Path(__file__).parent / "results"
FILES = {
    "full": RESULTS / "quality.json",
    # run --batch 64 --steps 2000 --no-more-seeds, arms of the bars, in several calls
    "longer": RESULTS / "quality-longer.json",
    "small": RESULTS / "quality-small.json",  # run --size small --more-seeds
}
TWINS = RESULTS / "quality-twins.json"  # of `python -m benchmarks.twins`
MOMENTA = RESULTS / "quality-momenta.json"  # of `python -m benchmarks.momenta`
PASSES = RESULTS / "quality-passes.json"  # of `python -m benchmarks.passes`
ROUNDINGS = RESULTS / "quality-roundings.json"  # of `python -m benchmarks.roundings`
_NUMBERS = (
    "layers",
    "width",
    "heads",
    "places",
    "batch",
    "steps",
    "windows",
    "members",
)
_BEGAN = time.monotonic()


def _say(line: str) -> None:
    print(f"[{time.monotonic() - _BEGAN:6.1f}] {line}", file=sys.stderr, flush=True)


def written() -> dict[str, str]:
    """The page and its pictures, by file name, from the saved results."""
    from steepest.race.suite import page, pictures  # needs SciPy

    from .remarks import remarks

    records = {name: Record.load(x) for name, x in FILES.items() if x.exists()}
    found = remarks(records, *map(kept, (TWINS, MOMENTA, PASSES, ROUNDINGS)))
    return {"quality.md": page(records, found), **pictures(records)}


def kept(path: Path) -> dict[str, Any]:
    """What a file of results has, or nothing."""
    return json.loads(path.read_text()) if path.exists() else {}


def main() -> None:
    """Run the suite, or time its parts."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.quality")
    parser.add_argument("what", choices=["run", "calibrate", "page"])
    parser.add_argument("--size", choices=[*SIZES], default="full")
    for name in _NUMBERS:
        parser.add_argument(f"--{name}", type=int, help="instead of the size's")
    parser.add_argument(
        "--more-seeds",
        action=argparse.BooleanOptionalAction,
        help="17 seeds, not 5, for arms that bars compare closely; default: the size's",
    )
    parser.add_argument("--optimizers", metavar="A,B", help="only these, and AdamW")
    parser.add_argument("--without", metavar="A,B", default="", help="not these")
    parser.add_argument("--json", type=Path, metavar="FILE", help="file for results")
    parser.add_argument("--resume", action="store_true", help="continue the file")
    parser.add_argument("--time-budget", type=float, metavar="SECONDS")
    parser.add_argument(
        "--partly", action="store_true", help="begin an arm that does not fit"
    )
    parser.add_argument(
        "--ahead", type=int, metavar="N", help="programs to compile at the same time"
    )
    parser.add_argument(
        "--cache", metavar="FOLDER", help="keep compiled programs for later calls"
    )
    parser.add_argument("--note", default="", help="a sentence for the page")
    args = parser.parse_args()
    if args.cache:
        jax.config.update("jax_compilation_cache_dir", args.cache)
    size = SIZES[args.size].but(**{name: getattr(args, name) for name in _NUMBERS})
    size = size.but(more_seeds=args.more_seeds)
    listed = lambda text: [x.strip() for x in text.split(",") if x.strip()]
    chosen = listed(args.optimizers) if args.optimizers else None
    arms = arms_named(chosen, size.arms)
    arms = tuple(arm for arm in arms if arm.name not in listed(args.without))
    if args.what == "page":
        for name, text in written().items():
            (DOCS / name).write_text(text, "utf-8")
        return
    if args.what == "calibrate":
        until = args.time_budget or float("inf")
        calibrate(size, arms, budget=540, ahead=args.ahead, until=until, say=_say)
        sys.stderr.flush()
        os._exit(0)  # do not wait for programs that are still being compiled
    if args.json is None:
        parser.error("run needs --json FILE")
    run = partial(run_suite, size, arms, args.json, resume=args.resume, say=_say)
    budget = {"time_budget": args.time_budget, "partly": args.partly}
    run(**budget, ahead=args.ahead, note=args.note)
    sys.stderr.flush()
    os._exit(0)  # do not wait for programs that are still being compiled


if __name__ == "__main__":
    main()
