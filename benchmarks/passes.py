"""New text, and text that is read several times: `python -m benchmarks.passes`.

    python -m benchmarks.passes [--seeds 12] [muon soap soap_muon muon_h adamw]

On a GPU, the longer runs of the suite read their text 3.2 times. This trains the model
of the small suite, which reads a small part of its text, on all of it, and on so little
that it is read as often. There are about as many bytes for each param then as on the
GPU. The learning rates and decays are those that the suite chose, the seeds are others,
and the losses are added to `benchmarks/results/quality-passes.json`. An optimizer takes
three minutes on two cores.
"""

import argparse
import json
from collections.abc import Callable, Sequence

from steepest.race.suite import ARMS, SIZES
from steepest.race.suite._members import Data

from .fits import against_muon, Fits
from .quality import kept, PASSES
from .twins import runs_of

FIRST = 3001  # no other program has such a seed
TIMES = 3.2  # as often is the text read
NAMES = ["muon", "soap", "soap_muon", "muon_h", "adamw"]


def short(data: Data) -> Data:
    """The beginning of a text, which a run of the small suite reads `TIMES` times.

    Args:
        data: all of it.
    """
    size = SIZES["small"]
    many = int(size.steps * size.batch * size.places / TIMES)
    return {**data, "train": data["train"][:many]}


TEXTS: dict[str, Callable[[Data], Data]] = {
    "new": lambda data: data,
    "repeated": short,
}


def fits_of(name: str, seeds: Sequence[int]) -> Fits:
    """The final losses with each text, in training and of held-out text.

    Args:
        name: of the arm in the suite.
        seeds: of the runs.
    """
    (arm,) = (arm for arm in ARMS if arm.name == name)
    found = {}
    for text, change in TEXTS.items():
        runs = runs_of(name, arm, seeds, change)
        found[text] = {
            "held-out": runs.nats,
            "training": [curve[-1] for curve in runs.curves],
        }
    return found


def main() -> None:
    """Train, save and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.passes")
    parser.add_argument("optimizers", nargs="*", default=NAMES)
    parser.add_argument("--seeds", type=int, default=12)
    args = parser.parse_args()
    seeds = range(FIRST, FIRST + args.seeds)
    for name in args.optimizers:
        known = kept(PASSES)
        known[name] = fits_of(name, seeds)
        PASSES.write_text(json.dumps(known, indent=1) + "\n")
        for text in TEXTS if "muon" in known else ():
            print(name, text, *against_muon(known, name, text), sep="  ", flush=True)


if __name__ == "__main__":
    main()
