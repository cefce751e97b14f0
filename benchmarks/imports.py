"""Import time against Optax: `python -m benchmarks.imports [ROUNDS]`.

Every measurement is a fresh process that has imported JAX already. It times the import,
and the time from there until `adamw(1e-3)` exists. The libraries take turns, and the
best round counts.
"""

import json
import os
import subprocess
import sys

LIBRARIES = "steepest", "optax"
ROUNDS = 10
_PROGRAM = """
import json, time
import jax, jax.numpy
began = time.perf_counter()
import {library}
imported = time.perf_counter()
{library}.adamw(1e-3)
made = time.perf_counter()
print(json.dumps([imported - began, made - began]))
"""


def measured(library: str) -> list[float]:
    """The seconds until a library is imported, and until its `adamw` is made."""
    program = [sys.executable, "-c", _PROGRAM.format(library=library)]
    # The first round compiles the source files, as pip does when it installs a library.
    env = {k: x for k, x in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    return json.loads(subprocess.check_output(program, text=True, env=env))


def best(rounds: int) -> dict[str, list[float]]:
    """The best times of every library."""
    times = {library: [] for library in LIBRARIES}
    for _ in range(rounds):
        for library in LIBRARIES:
            times[library].append(measured(library))
    return {
        library: list(map(min, zip(*rows, strict=True)))
        for library, rows in times.items()
    }


def main(rounds: int = ROUNDS) -> None:
    """Print the times and the ratios."""
    (import_, made), (their_import, their_made) = best(rounds).values()
    print(f"after `import jax, jax.numpy`, best of {rounds}: steepest, optax, ratio")
    for what, ours, theirs in (
        ("import", import_, their_import),
        ("import and adamw(1e-3)", made, their_made),
    ):
        row = f"{1e3 * ours:7.1f} ms {1e3 * theirs:7.1f} ms {ours / theirs:6.2f}"
        print(f"{what:24}{row}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
