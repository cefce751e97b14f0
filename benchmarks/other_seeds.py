"""Full runs of the small suite with other seeds, at the numbers that it chose."""

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from operator import add
from pathlib import Path
from typing import Any

from steepest.race.suite import Arm, ARMS, Record, SIZES
from steepest.race.suite._members import Data, data_of, Member, Members, Result
from steepest.race.suite._protocol import rest_of

from .quality import FILES, kept

BY_NAME = {arm.name: arm for arm in ARMS}


def command(
    program: str,
    path: Path,
    names: Sequence[str],
    seeds: range,
    train: Callable[[str, Sequence[int]], Any],
    say: Callable[[str, Mapping[str, Any]], str],
) -> None:
    """Train the optimizers that the command line names, save and print.

    Args:
        program: its name.
        path: of the file of results, which has those of each optimizer by its name.
        names: of the optimizers, if the command line names none.
        seeds: of the runs, if it gives no number of them.
        train: makes the results of one optimizer, with some seeds.
        say: a line about an optimizer, from all results.
    """
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks.{program}")
    parser.add_argument("optimizers", nargs="*", default=names)
    parser.add_argument("--seeds", type=int, default=len(seeds))
    args = parser.parse_args()
    for name in args.optimizers:
        results = train(name, range(seeds.start, seeds.start + args.seeds))
        known = kept(path) | {name: results}
        path.write_text(json.dumps(known, indent=1) + "\n")
        print(say(name, known), flush=True)


def trained(
    name: str, kinds: Mapping[str, Arm], seeds: Sequence[int]
) -> dict[str, list[float]]:
    """The final losses of some kinds of an optimizer, one per seed.

    Args:
        name: of the arm in the suite.
        kinds: the optimizers, by the names of the kinds.
        seeds: of the runs.
    """
    return {kind: runs_of(name, arm, seeds).nats for kind, arm in kinds.items()}


def runs_of(
    name: str,
    arm: Arm,
    seeds: Sequence[int],
    change: Callable[[Data], Data] = lambda data: data,
) -> Result:
    """Full runs at the learning rate and decay that the small suite chose.

    Args:
        name: of the arm in the suite.
        arm: the optimizer.
        seeds: of the runs.
        change: makes the text to train on.
    """
    size, record = SIZES["small"], Record.load(FILES["small"])
    entries = {x: arm.tuned for x, arm in record.arms.items() if arm.tuned is not None}
    tuned, rest = entries[name].tuned, rest_of(BY_NAME[name], entries)
    assert tuned is not None
    members = Members(arm, size, change(data_of(size)))
    found = Result([], [], 0.0)
    for k in range(0, len(seeds), size.members):
        some = [Member(*tuned, seed) for seed in seeds[k : k + size.members]]
        found = Result(*map(add, found, members(some, rest, size.steps)))
    return found
