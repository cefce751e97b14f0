"""Make the pictures again: `python -m docs.pictures trajectories [NAME ...]`."""

import argparse
import time
from pathlib import Path

from . import _trajectories

HERE = Path(__file__).parent


def main() -> None:
    """Write the pictures of all optimizers, or of those that are named."""
    parser = argparse.ArgumentParser(prog="python -m docs.pictures")
    parser.add_argument("kind", choices=["trajectories"])
    parser.add_argument("names", nargs="*", help="optimizers; all by default")
    parser.add_argument("--out", type=Path, default=HERE / "trajectories")
    asked = parser.parse_args()
    unknown = set(asked.names) - set(_trajectories.OPTIMIZERS)
    if unknown:
        parser.error(f"there is no optimizer called {', '.join(sorted(unknown))}")
    asked.out.mkdir(parents=True, exist_ok=True)
    names, start = asked.names or list(_trajectories.OPTIMIZERS), time.perf_counter()
    for name in names:
        svg = _trajectories.picture(name)
        (asked.out / f"{name}.svg").write_text(svg, "utf-8")
    seconds = time.perf_counter() - start
    print(f"{len(names)} pictures in {asked.out} after {seconds:.0f} s")


if __name__ == "__main__":
    main()
