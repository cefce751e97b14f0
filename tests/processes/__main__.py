"""`python -m tests.processes`: every optimizer in two processes, resumed elsewhere."""

import argparse
import sys
import tempfile
from pathlib import Path

from .. import conftest as conftest  # eight devices, programs that compile quickly
from ._cases import CASES
from ._run import compare


def main() -> int:
    """Returns 1 if anything differs."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.processes", description=__doc__
    )
    parser.add_argument("names", nargs="*", help="of optimizers; by default all")
    parser.add_argument(
        "--killed", type=int, default=1, help="the process that is killed: 0 or 1"
    )
    given = parser.parse_args()
    names = given.names or list(CASES)
    with tempfile.TemporaryDirectory() as folder:
        results = compare(Path(folder), names, killed=given.killed, timeout=3600)
    print(f"{'optimizer':28}{'loss':>7}{'then':>9}{'8':>9}{'2':>9}{'1 device':>9}")
    for x in results:
        drift = "".join(f"{n:9.0e}" for n in x.drift.values())
        first, last = x.losses
        print(f"{x.name:28}{first:7.3f}{last:9.5f}{drift}  {'; '.join(x.wrong)}")
    wrong = sum(bool(x.wrong) for x in results)
    print(f"{len(results)} optimizers, {wrong} of them wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
