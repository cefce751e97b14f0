"""int8 against float32 with more seeds than the suite: `python -m benchmarks.twins`.

    python -m benchmarks.twins [--seeds 18] [lion adamw muon]

The bars of the suite for int8 compare a mean of five differences with its own standard
error, and one of three fails by chance. This trains the model of the small suite again,
at the learning rates and decays that the suite chose, with other seeds, and adds the
losses to `benchmarks/results/quality-twins.json`. An optimizer takes three minutes on
two cores.
"""

from steepest.race.suite import Arm, ARMS

from .other_seeds import BY_NAME, command, trained
from .quality import TWINS
from .variations import cost_of_int8


def both(name: str) -> dict[str, Arm]:
    """An optimizer in float32 and in int8.

    Args:
        name: of the arm in float32.
    """
    return {"float32": BY_NAME[name], "int8": BY_NAME[f"{name} int8"]}


def main() -> None:
    """Train, save and print."""
    command(
        "twins",
        TWINS,
        [arm.twin for arm in ARMS if arm.twin and arm.name.endswith("int8")],
        range(1001, 1019),  # the suite has no such seeds
        lambda name, seeds: trained(name, both(name), seeds),
        lambda name, known: cost_of_int8(name, known[name]),
    )


if __name__ == "__main__":
    main()
