"""The quality suite without the command line: `python -m benchmarks.quality run`.

It needs only JAX, NumPy and jaxtyping; Optax takes part if it is installed.

    python -m benchmarks.quality calibrate --size full
    python -m benchmarks.quality run --size full --json FILE --time-budget 570
    python -m benchmarks.quality run --size full --json FILE --time-budget 570 --resume
"""

import argparse
import os
import sys
import time
from functools import partial
from pathlib import Path

from steepest.race.suite import arms_named, calibrate, run_suite, SIZES

_BEGAN = time.monotonic()


def _say(line: str) -> None:
    print(f"[{time.monotonic() - _BEGAN:6.1f}] {line}", file=sys.stderr, flush=True)


def main() -> None:
    """Run the suite, or time its parts."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.quality")
    parser.add_argument("what", choices=["run", "calibrate"])
    parser.add_argument("--size", choices=[*SIZES], default="full")
    for name in ("layers", "width", "heads", "places", "batch", "steps", "windows"):
        parser.add_argument(f"--{name}", type=int, help="instead of the size's")
    parser.add_argument("--optimizers", metavar="A,B", help="only these, and AdamW")
    parser.add_argument("--without", metavar="A,B", default="", help="not these")
    parser.add_argument("--json", type=Path, metavar="FILE", help="file for results")
    parser.add_argument("--resume", action="store_true", help="continue the file")
    parser.add_argument("--time-budget", type=float, metavar="SECONDS")
    many = min(6, (os.cpu_count() or 1) // 2) if (os.cpu_count() or 1) > 4 else 0
    parser.add_argument(
        "--ahead", type=int, default=many, help="arms to compile meanwhile"
    )
    args = parser.parse_args()
    names = ("layers", "width", "heads", "places", "batch", "steps", "windows")
    size = SIZES[args.size].but(**{name: getattr(args, name) for name in names})
    listed = lambda text: [x.strip() for x in text.split(",") if x.strip()]
    arms = arms_named(listed(args.optimizers) if args.optimizers else None)
    arms = tuple(arm for arm in arms if arm.name not in listed(args.without))
    if args.what == "calibrate":
        until = args.time_budget or float("inf")
        calibrate(size, arms, budget=1080, ahead=args.ahead, until=until, say=_say)
        return
    if args.json is None:
        parser.error("run needs --json FILE")
    run = partial(run_suite, size, arms, args.json, resume=args.resume, say=_say)
    run(time_budget=args.time_budget, ahead=args.ahead)
    sys.stderr.flush()
    os._exit(0)  # do not wait for programs that are still being compiled


if __name__ == "__main__":
    main()
