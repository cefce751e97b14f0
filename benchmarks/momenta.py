"""Momenta of 0.9 and 0.95 in the small suite: `python -m benchmarks.momenta`.

    python -m benchmarks.momenta [--seeds 12] [muon normuon soap soap_muon muon_h adamw]

All optimizers of the suite have a momentum of 0.9. This trains the model of the small
suite again with both, at the learning rates and decays that the suite chose, with other
seeds, and adds the losses to `benchmarks/results/quality-momenta.json`. An optimizer
takes two minutes on two cores.
"""

from dataclasses import replace

from steepest.core import call_of
from steepest.race.suite import Arm
from steepest.race.suite._arms import Numbers

from .other_seeds import BY_NAME, command, trained
from .quality import MOMENTA
from .variations import gain_of_momentum

# The argument for the momentum of each optimizer.
ARGUMENTS = {
    "muon": "beta",
    "normuon": "beta",
    "soap": "b1",
    "soap_muon": "beta",
    "muon_h": "beta",
    "adamw": "b1",
}


def with_momentum(name: str, momentum: float) -> Arm:
    """An arm of the suite with another momentum.

    Args:
        name: of the arm.
        momentum: instead of its own.
    """
    arm = BY_NAME[name]

    def make(numbers: Numbers) -> object:
        call = call_of(arm.make(numbers))
        assert call is not None
        return call.function(**call.arguments | {ARGUMENTS[name]: momentum})

    return replace(arm, make=make)


def main() -> None:
    """Train, save and print."""
    kinds = lambda name: {str(x): with_momentum(name, x) for x in (0.95, 0.9)}
    command(
        "momenta",
        MOMENTA,
        [*ARGUMENTS],
        range(2001, 2013),  # neither the suite nor `benchmarks.twins` has such seeds
        lambda name, seeds: trained(name, kinds(name), seeds),
        lambda name, known: gain_of_momentum(name, known[name]),
    )


if __name__ == "__main__":
    main()
