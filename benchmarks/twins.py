"""int8 against float32 with more seeds than the suite: `python -m benchmarks.twins`.

    python -m benchmarks.twins [--seeds 18] [lion adamw muon]

The bars of the suite for int8 compare a mean of five differences with its own standard
error, and one of three fails by chance. This trains the model of the small suite again,
at the learning rates and decays that the suite chose, with other seeds, and adds the
losses to `benchmarks/results/quality-twins.json`. An optimizer takes three minutes on
two cores.
"""

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from operator import add

from steepest.race.suite import Arm, ARMS, Record, SIZES
from steepest.race.suite._members import Data, data_of, Member, Members, Result
from steepest.race.suite._protocol import rest_of

from .quality import FILES, kept, TWINS
from .remarks import cost_of_int8

FIRST = 1001  # the suite has no such seed
_ARMS = {arm.name: arm for arm in ARMS}


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
    tuned, rest = entries[name].tuned, rest_of(_ARMS[name], entries)
    assert tuned is not None
    members = Members(arm, size, change(data_of(size)))
    found = Result([], [], 0.0)
    for k in range(0, len(seeds), size.members):
        some = [Member(*tuned, seed) for seed in seeds[k : k + size.members]]
        found = Result(*map(add, found, members(some, rest, size.steps)))
    return found


def both(name: str) -> dict[str, Arm]:
    """An optimizer in float32 and in int8.

    Args:
        name: of the arm in float32.
    """
    return {"float32": _ARMS[name], "int8": _ARMS[f"{name} int8"]}


def main() -> None:
    """Train, save and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.twins")
    twins = [arm.twin for arm in ARMS if arm.equal and arm.name.endswith("int8")]
    parser.add_argument("optimizers", nargs="*", default=twins)
    parser.add_argument("--seeds", type=int, default=18)
    args = parser.parse_args()
    seeds = range(FIRST, FIRST + args.seeds)
    for name in args.optimizers:
        known = kept(TWINS)
        known[name] = trained(name, both(name), seeds)
        TWINS.write_text(json.dumps(known, indent=1) + "\n")
        print(cost_of_int8(name, known[name]), flush=True)


if __name__ == "__main__":
    main()
