"""One cycle: up to a peak, and down again to far below where it began.

Smith and Topin, Super-convergence: very fast training of neural networks using large
learning rates, 2017, arXiv:1708.07120
"""

from ..core import number, positive, Real, real, Schedule
from ._piecewise import interpolated


def linear_onecycle_schedule(
    transition_steps: int | float,
    peak_value: Real,
    pct_start: float = 0.3,
    pct_final: float = 0.85,
    div_factor: Real = 25.0,
    final_div_factor: Real = 1e4,
) -> Schedule:
    """Up to the peak, down to where it began, and on to almost nothing: straight lines.

        at step 0                             low = peak_value / div_factor
        at pct_start * transition_steps       peak_value
        at pct_final * transition_steps       low
        at transition_steps                   low / final_div_factor

    Args:
        transition_steps: how many steps the cycle takes.
        peak_value: the highest value.
        pct_start: the share of the steps that go up.
        pct_final: the share after which it falls below where it began.
        div_factor: how many times the peak is as high as the beginning.
        final_div_factor: how many times the beginning is as high as the end.

    >>> schedule = linear_onecycle_schedule(100, 1.0)
    >>> [round(float(schedule(count)), 6) for count in (0, 30, 85, 100)]
    [0.04, 1.0, 0.04, 4e-06]
    """
    who = "linear_onecycle_schedule"
    _check(who, transition_steps, div_factor, final_div_factor)
    real(who, pct_start=pct_start, pct_final=pct_final)
    div, final_div = number(div_factor), number(final_div_factor)
    return interpolated(
        who,
        "linear",
        number(peak_value) / div,
        {
            int(pct_start * transition_steps): div,
            int(pct_final * transition_steps): 1.0 / div,
            transition_steps: 1.0 / final_div,
        },
    )


def cosine_onecycle_schedule(
    transition_steps: int | float,
    peak_value: Real,
    pct_start: float = 0.3,
    div_factor: Real = 25.0,
    final_div_factor: Real = 1e4,
) -> Schedule:
    """Up to the peak and down to almost nothing, along half waves of the cosine.

        at step 0                             low = peak_value / div_factor
        at pct_start * transition_steps       peak_value
        at transition_steps                   low / final_div_factor

    Args:
        transition_steps, peak_value, pct_start, div_factor, final_div_factor: as for
            `linear_onecycle_schedule`.
    """
    who = "cosine_onecycle_schedule"
    _check(who, transition_steps, div_factor, final_div_factor)
    real(who, pct_start=pct_start)
    div, final_div = number(div_factor), number(final_div_factor)
    return interpolated(
        who,
        "cosine",
        number(peak_value) / div,
        {
            int(pct_start * transition_steps): div,
            int(transition_steps): 1.0 / (div * final_div),
        },
    )


def _check(who: str, transition_steps: Real, div: Real, final_div: Real) -> None:
    positive(
        who,
        transition_steps=transition_steps,
        div_factor=div,
        final_div_factor=final_div,
    )
