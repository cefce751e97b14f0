"""The cost of a sweep against a single run: `python -m benchmarks.sweep [PROBLEM ...]`.

All learning rates of a problem with three seeds are one program; one rate with one seed
is another. They take turns, and the best of several counts. "steps" is the training
steps alone; "all" is everything from the call on, including compilation.
"""

import sys
import time

from steepest.race import race, use_all_cores
from steepest.race.problems import load

from . import machine

TURNS = 3


def seconds(problem: str, **how: object) -> tuple[float, float]:
    """The seconds of the steps, and of everything."""
    began = time.perf_counter()
    outcome = race(problem, ["adamw"], **how)
    return outcome.sweeps[0].seconds[-1], time.perf_counter() - began


def main() -> None:
    """Print a row for each problem."""
    use_all_cores()
    print(", ".join(machine.describe().values()))
    print(f"{'problem':<12}{'runs':>6}{'steps':>18}{'all':>18}")
    for problem in sys.argv[1:] or ["digits"]:
        rates = load(problem).learning_rates
        middle = [rates[len(rates) // 2]]
        one, all_ = [], []
        for _ in range(TURNS):
            one.append(seconds(problem, learning_rates=middle, seeds=1))
            all_.append(seconds(problem, seeds=3))
        best = lambda rows, k: min(row[k] for row in rows)
        cells = [f"{best(all_, k):.1f} / {best(one, k):.1f} s" for k in (0, 1)]
        times = [best(all_, k) / best(one, k) for k in (0, 1)]
        shown = "".join(
            f"{cell:>12} = {ratio:.1f}"
            for cell, ratio in zip(cells, times, strict=True)
        )
        print(f"{problem:<12}{3 * len(rates):>6}{shown}")


if __name__ == "__main__":
    main()
