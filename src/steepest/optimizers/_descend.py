"""The last link of an optimizer: down, by the learning rate."""

from ..core import (
    GradientTransformationExtraArgs,
    rate_given,
    ScalarOrSchedule,
)
from ..transforms import scale_by_learning_rate


def descend(
    who: str, learning_rate: ScalarOrSchedule | None
) -> GradientTransformationExtraArgs:
    """`scale_by_learning_rate`, where there must be one.

    Args:
        who: the optimizer, which speaks in the error.
        learning_rate: a number, or a function of the count.
    """
    return scale_by_learning_rate(rate_given(who, learning_rate))
