"""`python -m tests.fuzz COUNT --seed SEED`."""

import argparse
import os
import sys

os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0")

import jax

from ._fuzz import fuzz


def main() -> int:
    """Returns 1 if anything differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("count", type=int, help="how many expressions")
    parser.add_argument("--seed", type=int, default=0, help="of the random numbers")
    parser.add_argument("--whole", action="store_true", help="do not make them small")
    parser.add_argument(
        "--concrete", action="store_true", help="with `if` in the users' functions"
    )
    given = parser.parse_args()
    jax.config.update("jax_numpy_dtype_promotion", "strict")
    jax.config.update("jax_numpy_rank_promotion", "raise")
    say = lambda text: print(text, end="\n\n", flush=True)
    how = {"concrete": given.concrete, "shrink": not given.whole}
    report = fuzz(given.count, given.seed, **how, say=say)
    print(f"{report}".split("\n", 1)[0])
    for reason, times in report.reasons.most_common(12):
        print(f"  {times:4} {reason}")
    return 1 if report.differences else 0


if __name__ == "__main__":
    sys.exit(main())
