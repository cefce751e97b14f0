"""Captions of the plots, and how to read the numbers."""

from .._breadth import TOLERANCE
from .._choice import MARGIN
from .._halving import MARGIN as HALVING
from .._outcome import Outcome
from .._standings import LEVEL, standings
from ._curves import is_share
from ._stopped import WHEN

_PART = f"{100 * TOLERANCE:.0f}%"


def captions(outcome: Outcome) -> dict[str, str]:
    """The caption of each plot, by its name.

    Args:
        outcome: of a race.
    """
    lost = any(row.verdict == "diverged" for row in standings(outcome))
    gone = " A cross marks where a run diverged." if lost else ""
    share = is_share(outcome)
    stopped = (
        " Dashes mark those that halving has stopped early." if outcome.halving else ""
    )
    range_ = "range over the seeds"
    bar = range_ if outcome.better == "lower" else "standard deviation"
    return {
        "loss-by-steps": "Each optimizer at its best learning rate. The line is the "
        f"mean over the seeds, the band the {range_}.{gone}",
        "loss-by-seconds": "The same runs against time. Here an expensive step has to "
        "pay off.",
        "metric-by-seconds": f"The {outcome.measure} against time"
        + (", and the target" if outcome.target is not None else "")
        + "."
        + (" The axis shows the distance from 1." if share else ""),
        "learning-rates": f"The final {outcome.measure} at every learning rate tried. "
        "A large open marker is the best one. A flat line means that the exact choice "
        f"matters little. The band is the {range_}. Crosses mark learning rates at "
        f"which runs diverged; a small cross means only some of them.{stopped}",
        "finals": f"The marker is the mean, the bar the {bar}, and each dot a seed. "
        "The dotted line is the best mean.",
    }


def reading(outcome: Outcome) -> list[str]:
    """The notes on how to read the report.

    Args:
        outcome: of a race.
    """
    notes = [
        "Times are per run, with all runs of an optimizer sharing the machine: the "
        "total time divided by the number of runs. A single run on its own may take "
        "longer than that. Compile time is not included. The time per step is the "
        "median over the evaluations, ± half the interquartile range; if it is not "
        "above twice that, only a bound is shown.",
        *_chosen(outcome),
        "For each seed, all optimizers started from the same params and saw the same "
        f"batches.{_test(outcome)}",
        "The recommendation weighs quality first: candidates are the best optimizer "
        "and those without a clear difference from it whose mean lags behind by at "
        f"most {_PART} of the way from the initial {outcome.measure} to the best. "
        "Among them the cheapest wins: by time to target, then time per step, then "
        "size of the state, then the range of good learning rates. A cost decides only "
        f"if it differs by more than {100 * MARGIN:.0f}%, and by more than its spread; "
        "times count if they are above twice their spread.",
        "Good rates: the factor between the highest and the lowest learning rate at "
        f"which the final {outcome.measure} lags behind that of the best rate by at "
        f"most {_PART} of the way from its initial value, interpolated between the "
        "rates tried. ≥ means that the range reaches the lowest or highest rate tried.",
        "No clear difference does not mean equal: with few seeds, only large "
        "differences can be distinguished from chance. More seeds help.",
        "A learning rate at which any run diverged cannot be the best one.",
    ]
    if outcome.halving:
        notes.append(
            f"Halving: {WHEN}, each optimizer went on with the "
            "better half of its learning rates, the neighbours of the best, and those "
            f"that lagged behind by at most {100 * HALVING:.0f}% of the way; the "
            "others were stopped. They have no final value: they are not tested, "
            "cannot be the best, and count as not good in the range of good rates, "
            "which then has a ≥, because it may be wider. Runs that were stopped might "
            "have diverged later. Times are shared by the runs that are left."
        )
    if outcome.target is not None:
        notes.append(
            f"The target is {outcome.measure} {outcome.target:g}. Steps to target are "
            "the mean over the seeds; a dash means that a seed never reached it. The "
            "time to target is the number of steps times the time per step, ± how much "
            "both vary: the standard deviation over the seeds, and the spread of the "
            "time per step."
        )
    return notes


def _chosen(outcome: Outcome) -> list[str]:
    """The bias of choosing the learning rate, if there was a choice."""
    if all(len(sweep.rates) == 1 for sweep in outcome.sweeps):
        return []
    return [
        f"The learning rate was chosen by the same {outcome.measure} that is shown, so "
        "every number is slightly optimistic. The bias is the same for all optimizers "
        "that tried the same number of learning rates."
    ]


def _test(outcome: Outcome) -> str:
    """The tests that were used, in words; empty if there was nothing to compare."""
    rows = [
        row for row in standings(outcome) if row.verdict not in ("best", "diverged")
    ]
    paired = [row.paired for row in rows if row.p is not None]
    if not rows:
        return ""
    if not paired:
        return " With one seed, differences cannot be tested."
    test = "Welch's test"
    if any(paired):
        test = "a t-test, paired by seed"
    if any(paired) and not all(paired):
        test += ", or by Welch's test where all paired differences are equal"
    text = (
        f" Differences are tested over the seeds by {test}, with Holm's correction for "
        f"the number of comparisons. An optimizer is called worse if p < {LEVEL}."
    )
    if outcome.better == "lower":
        text += " Logarithms are compared if all values are positive."
    return text
