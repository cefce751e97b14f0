"""New text, and text that is read several times: `python -m benchmarks.passes`.

    python -m benchmarks.passes [--seeds 12] [muon soap soap_muon muon_h adamw]

On a machine with few Python files, long runs read them several times. This trains the
model of the small suite, which reads a small part of its text, on all of it, and on so
little that it is read 3.2 times. The learning rates and decays are those that the suite
chose, the seeds are others, and the losses are added to
`benchmarks/results/quality-passes.json`. An optimizer takes three minutes on two cores.
"""

from collections.abc import Mapping, Sequence

from steepest.race.suite import SIZES
from steepest.race.suite._members import Data

from .fits import against_muon, Fits, TEXTS, TIMES
from .other_seeds import BY_NAME, command, runs_of
from .quality import PASSES


def short(data: Data) -> Data:
    """The beginning of a text, which a run of the small suite reads `TIMES` times.

    Args:
        data: all of it.
    """
    size = SIZES["small"]
    many = int(size.steps * size.batch * size.places / TIMES)
    return {**data, "train": data["train"][:many]}


def fits_of(name: str, seeds: Sequence[int]) -> Fits:
    """The final losses with each text, in training and of held-out text.

    Args:
        name: of the arm in the suite.
        seeds: of the runs.
    """
    found = {}
    for text, change in zip(TEXTS, (dict, short), strict=True):
        runs = runs_of(name, BY_NAME[name], seeds, change)
        found[text] = {
            "held-out": runs.nats,
            "training": [curve[-1] for curve in runs.curves],
        }
    return found


def main() -> None:
    """Train, save and print."""
    command(
        "passes",
        PASSES,
        ["muon", "soap", "soap_muon", "muon_h", "adamw"],
        range(3001, 3013),  # no other program has such seeds
        fits_of,
        _said,
    )


def _said(name: str, found: Mapping[str, Fits]) -> str:
    if "muon" not in found:
        return name
    parts = [f"{text}: {', '.join(against_muon(found, name, text))}" for text in TEXTS]
    return f"{name}, training and held-out, from Muon: {'; '.join(parts)}"


if __name__ == "__main__":
    main()
