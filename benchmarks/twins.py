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
from collections.abc import Sequence
from typing import Any

import numpy as np

from steepest.race.suite import ARMS, Record, SIZES
from steepest.race.suite._members import data_of, Member, Members, Rest
from steepest.race.suite._statistics import paired

from .quality import FILES, TWINS

FIRST = 1001  # the suite has no such seed
_ARMS = {arm.name: arm for arm in ARMS}


def trained(name: str, seeds: Sequence[int]) -> dict[str, list[float]]:
    """The final losses of an optimizer in float32 and in int8, one per seed.

    Args:
        name: of the arm in float32.
        seeds: of the runs.
    """
    size, record = SIZES["small"], Record.load(FILES["small"])
    data, losses = data_of(size), {}
    known = {x: record.arms[x].tuned for x in (name, "adamw")}
    tuned, adamw = (known[x] and known[x].tuned for x in (name, "adamw"))
    assert tuned is not None and adamw is not None
    rest = Rest(*adamw) if _ARMS[name].rest else Rest(0.0, 0.0)
    for kind, arm in {"float32": name, "int8": f"{name} int8"}.items():
        members = Members(_ARMS[arm], size, data)
        losses[kind] = [
            loss
            for k in range(0, len(seeds), size.members)
            for loss in members(
                [Member(*tuned, seed) for seed in seeds[k : k + size.members]],
                rest,
                size.steps,
            ).nats
        ]
    return losses


def main() -> None:
    """Train, save and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.twins")
    twins = [arm.twin for arm in ARMS if arm.equal and arm.name.endswith("int8")]
    parser.add_argument("optimizers", nargs="*", default=twins)
    parser.add_argument("--seeds", type=int, default=18)
    args = parser.parse_args()
    seeds = range(FIRST, FIRST + args.seeds)
    for name in args.optimizers:
        known: dict[str, Any] = json.loads(TWINS.read_text()) if TWINS.exists() else {}
        known[name] = trained(name, seeds)
        TWINS.write_text(json.dumps(known, indent=1) + "\n")
        test = paired(known[name]["int8"], known[name]["float32"])
        sigma = np.std(known[name]["float32"], ddof=1)
        assert test is not None  # none of them diverged
        print(
            f"{name}: {test.mean:+.4f} ± {test.error:.4f} nats, "
            f"{test.mean / sigma:+.2f} sigma",
            flush=True,
        )


if __name__ == "__main__":
    main()
