"""Make the pictures again: `python -m docs.pictures [KIND [NAME ...]]`."""

import argparse
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from . import _schedules, _trajectories

HERE = Path(__file__).parent


def main() -> None:
    """Write all pictures, or those of a kind, or of some optimizers."""
    parser = argparse.ArgumentParser(prog="python -m docs.pictures")
    kinds = ["all", "schedules", "trajectories"]
    parser.add_argument("kind", nargs="?", default="all", choices=kinds)
    parser.add_argument("names", nargs="*", help="optimizers; all by default")
    asked = parser.parse_args()
    unknown = set(asked.names) - set(_trajectories.OPTIMIZERS)
    if unknown:
        parser.error(f"there is no optimizer called {', '.join(sorted(unknown))}")
    start, files = time.perf_counter(), 0
    for file, svg in _pictures(asked.kind, asked.names):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(svg, "utf-8")
        files += 1
    print(f"{files} pictures after {time.perf_counter() - start:.0f} s")


def _pictures(kind: str, names: Sequence[str]) -> Iterator[tuple[Path, str]]:
    """The files and what to write into them."""
    if kind != "trajectories":
        yield from _schedules.schedules()
    if kind != "schedules":
        for name in names or _trajectories.OPTIMIZERS:
            file = HERE / "trajectories" / f"{name}.svg"
            yield file, _trajectories.picture(name)


if __name__ == "__main__":
    main()
