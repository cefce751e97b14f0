"""One-cycle schedules: up to a peak, then down to far below the initial value.

Smith and Topin, Super-convergence: very fast training of neural networks using large
learning rates, 2017, arXiv:1708.07120
"""

from typing import Any

from .. import check
from ..core import Real, Schedule, schedule
from ._piecewise import interpolated


@schedule
def linear_onecycle_schedule(
    transition_steps: int | float,
    peak_value: Real,
    pct_start: float = 0.3,
    pct_final: float = 0.85,
    div_factor: Real = 25.0,
    final_div_factor: Real = 1e4,
) -> Schedule:
    """Linear one-cycle: up to the peak, back to the initial value, then to near zero.

        at step 0                             low = peak_value / div_factor
        at pct_start * transition_steps       peak_value
        at pct_final * transition_steps       low
        at transition_steps                   low / final_div_factor

    Args:
        transition_steps: the number of steps of the cycle.
        peak_value: the highest value.
        pct_start: the fraction of the steps at which the value reaches the peak.
        pct_final: the fraction of the steps at which it is back at its initial value.
        div_factor: the peak value divided by the initial value.
        final_div_factor: the initial value divided by the final value.

    >>> schedule = linear_onecycle_schedule(100, 1.0)
    >>> [round(float(schedule(count)), 6) for count in (0, 30, 85, 100)]
    [0.04, 1.0, 0.04, 4e-06]
    """
    name = "linear_onecycle_schedule"
    peak, steps, div, final_div = _checked(
        name, peak_value, transition_steps, div_factor, final_div_factor
    )
    start, final = check.fraction(name, pct_start=pct_start, pct_final=pct_final)
    if start > final:
        raise ValueError(
            f"{name}: pct_start is {start} and pct_final is {final}, expected pct_final"
            " to be at least pct_start."
        )
    return interpolated(
        name,
        "linear",
        peak / div,
        {
            int(start * steps): div,
            int(final * steps): 1.0 / div,
            steps: 1.0 / final_div,
        },
    )


@schedule
def cosine_onecycle_schedule(
    transition_steps: int | float,
    peak_value: Real,
    pct_start: float = 0.3,
    div_factor: Real = 25.0,
    final_div_factor: Real = 1e4,
) -> Schedule:
    """Cosine one-cycle: up to the peak, then down to near zero.

        at step 0                             low = peak_value / div_factor
        at pct_start * transition_steps       peak_value
        at transition_steps                   low / final_div_factor

    Args:
        transition_steps: the number of steps of the cycle.
        peak_value: the highest value.
        pct_start: the fraction of the steps at which the value reaches the peak.
        div_factor: the peak value divided by the initial value.
        final_div_factor: the initial value divided by the final value.
    """
    name = "cosine_onecycle_schedule"
    peak, steps, div, final_div = _checked(
        name, peak_value, transition_steps, div_factor, final_div_factor
    )
    (start,) = check.fraction(name, pct_start=pct_start)
    return interpolated(
        name,
        "cosine",
        peak / div,
        {int(start * steps): div, int(steps): 1.0 / (div * final_div)},
    )


def _checked(
    name: str, peak_value: Real, transition_steps: Real, div: Real, final_div: Real
) -> list[Any]:
    """Check the arguments of both schedules, and return them in this order."""
    more = {
        "transition_steps": transition_steps,
        "div_factor": div,
        "final_div_factor": final_div,
    }
    check.positive.must(name, **more)
    return check.finite(name, peak_value=peak_value, **more)
