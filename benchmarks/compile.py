"""Time to a compiled step of matrices against Optax: `python -m benchmarks.compile`.

Every turn clears JAX's caches, takes a new learning rate, and traces, lowers and
compiles update and apply, as in a new process, without JAX's compilation cache on disk.
The contenders take turns, and the best round counts. Beside the seconds on the wall
stand those of all cores, which other programs on the machine hardly change. A ratio is
the time of Optax's Muon over that of the contender: above 1, steepest is faster. Size:
the instructions of the compiled program, and in how many computations.
"""

import argparse
import re
import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import jax
import optax.contrib

import steepest

from . import machine
from .optimizers import fresh_rates, step_of
from .table import amount, markdown
from .timing import clock, race, Times
from .trees import TINY, Tree, TREES

Make = Callable[[float], Any]  # learning rate -> transformation

THEIRS = "optax.contrib.muon"
CONTENDERS: dict[str, tuple[Any, Make]] = {
    THEIRS: (optax, lambda rate: optax.contrib.muon(rate)),
    "muon": (steepest, lambda rate: steepest.muon(rate)),
    "contrib.muon": (steepest, lambda rate: steepest.contrib.muon(rate)),
    "normuon": (steepest, lambda rate: steepest.normuon(rate)),
    "soap": (steepest, lambda rate: steepest.soap(rate)),
    "soap_muon": (steepest, lambda rate: steepest.soap_muon(rate)),
    "shampoo": (steepest, lambda rate: steepest.shampoo(rate)),
    "psgd": (steepest, lambda rate: steepest.psgd(rate)),
}
USUAL = (THEIRS, "muon", "contrib.muon", "soap")
PARTS = ("trace", "lower", "compile")


class Contender:
    """One optimizer on one tree, compiled anew in every turn."""

    def __init__(self, lib: Any, make: Make, tree: Tree):
        self._lib, self._make = lib, make
        self._params = tree.fill(0, 0.02)
        self._state = make(1.0).init(self._params)
        self._rates = fresh_rates()
        self.size = 0, 0  # of the last program: its instructions and computations

    def turn(self) -> dict[str, float]:
        """The seconds of each part, on the wall and of all cores."""
        jax.clear_caches()
        step = jax.jit(step_of(self._lib, self._make(next(self._rates))))
        spent: dict[str, float] = {}
        arguments = self._params, self._state, self._params
        traced = _timed(spent, "trace", partial(step.trace, *arguments))
        lowered = _timed(spent, "lower", traced.lower)
        self.size = _size(_timed(spent, "compile", lowered.compile).as_text())
        return spent


def _timed(spent: dict[str, float], part: str, f: Callable[[], Any]) -> Any:
    def measured() -> tuple[float, Any]:
        start = time.process_time()
        result = f()
        return time.process_time() - start, result

    seconds, (cores, result) = clock(measured)
    spent |= {part: seconds, f"{part}, cores": cores}
    return result


def _size(hlo: str) -> tuple[int, int]:
    """The number of instructions and of computations in a compiled program."""
    return len(re.findall(r"^ .* = ", hlo, re.M)), len(re.findall(r"\{$", hlo, re.M))


def measured(
    names: Iterable[str], tree: Tree, rounds: int, warmups: int = 0
) -> tuple[Times, dict[str, tuple[int, int]]]:
    """The times of some contenders and of Optax's Muon, and the sizes of the programs.

    Args:
        names: which of `CONTENDERS`.
        tree: the params.
        rounds: number of rounds that count.
        warmups: number of rounds before them.
    """
    contenders = {
        name: Contender(*CONTENDERS[name], tree)
        for name in dict.fromkeys([THEIRS, *names])
    }
    turns = {name: contender.turn for name, contender in contenders.items()}
    times = race(turns, rounds, warmups=warmups)
    return times, {name: x.size for name, x in contenders.items()}


def table(times: Times, sizes: dict[str, tuple[int, int]]) -> str:
    """One line for each contender."""
    best = lambda quantity, who: min(times[quantity][who])

    def whole(end: str, who: str) -> float:
        rounds = zip(*(times[part + end][who] for part in PARTS), strict=True)
        return min(map(sum, rounds))

    head = ["optimizer", *PARTS, "all", "ratio", "all, cores", "ratio", "size"]
    lines = []
    for who, (instructions, computations) in sizes.items():
        line = [who, *(amount(best(part, who), "s") for part in PARTS)]
        for end in ("", ", cores"):
            ratio = whole(end, THEIRS) / whole(end, who)
            line += [amount(whole(end, who), "s"), f"{ratio:.2f}"]
        lines.append([*line, f"{instructions} in {computations}"])
    return markdown(head, lines)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compile")
    parser.add_argument(
        "--only", default=",".join(USUAL), help=", ".join(CONTENDERS) + ", or all"
    )
    parser.add_argument("--tree", default="matrices-96", help=", ".join(TREES))
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--quick", action="store_true", help="a tiny tree, one round")
    args = parser.parse_args()
    jax.config.update("jax_enable_compilation_cache", False)
    tree = (TINY if args.quick else TREES)[args.tree]
    names = list(CONTENDERS) if args.only == "all" else args.only.split(",")
    rounds = 1 if args.quick else args.rounds
    print(", ".join(machine.describe().values()), flush=True)
    times, sizes = measured(names, tree, rounds, warmups=0 if args.quick else 1)
    print(f"{tree.says}, best of {rounds}\n")
    print(table(times, sizes))


if __name__ == "__main__":
    main()
