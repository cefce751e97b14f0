"""What the pictures show, and how the numbers are to be taken."""

from .._outcome import Outcome
from .._standings import LEVEL, standings


def captions(outcome: Outcome) -> dict[str, str]:
    """What each picture shows, by its name.

    Args:
        outcome: of a race.
    """
    lost = any(row.verdict == "diverged" for row in standings(outcome))
    gone = " It ends at a cross where a run diverged." if lost else ""
    bar = "the range of the seeds" if outcome.better == "lower" else "the spread"
    return {
        "loss-by-steps": "Each optimizer at its best learning rate. The line is the "
        f"mean over the seeds, the band reaches from the lowest to the highest.{gone}",
        "loss-by-seconds": "The same runs by the time they take. A costly step must "
        "make up for it here.",
        "learning-rates": f"How much the choice matters: the {outcome.measure} at the "
        "end for every learning rate tried, the best one as a large open sign. A flat "
        "line forgives a bad choice; bands are as above. Crosses are learning rates at "
        "which runs diverged; small ones, where only some did.",
        "finals": f"The mean, {bar} as a bar, and each seed as a dot. The "
        "dotted line is the best mean.",
    }


def reading(outcome: Outcome) -> list[str]:
    """What to keep in mind.

    Args:
        outcome: of a race.
    """
    told = [
        "Seconds are those of one run, when all runs of an optimizer share the "
        "machine: their common time, divided by their number. A run that is alone "
        "may take longer. Compiling is not counted. The time per step is the median "
        "over the looks, ± half the distance between the quartiles.",
        f"The learning rate was chosen by the same {outcome.measure} that is shown. So "
        "every number is a little better than it would be on data never looked at: for "
        "all optimizers alike, if they tried equally many learning rates.",
        "From each seed all optimizers began at the same params and saw the same "
        "batches. Differences are tested over the seeds: Welch's test, with Holm's "
        f"correction for the number of comparisons. A p below {LEVEL} is called worse."
        + (
            " Logarithms are compared, where every metric is above zero."
            if outcome.better == "lower"
            else ""
        ),
        "No clear difference does not mean equal: with few seeds only large "
        "differences can be told from chance. More seeds tell more.",
        "A learning rate at which any run diverged cannot be the best one.",
    ]
    if outcome.target is not None:
        told.append(
            f"The target is {outcome.measure} {outcome.target:g}. Steps and "
            "seconds to it are means over the seeds; there are none if one of them "
            "never got there."
        )
    return told
