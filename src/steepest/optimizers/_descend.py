"""The last link of an optimizer: a descent step, scaled by the learning rate."""

from .. import check
from ..core import GradientTransformationExtraArgs, ScalarOrSchedule
from ..transforms import scale_by_learning_rate


def descend(
    name: str, learning_rate: ScalarOrSchedule | None
) -> GradientTransformationExtraArgs:
    """`scale_by_learning_rate`, with a warning if the learning rate is `None`.

    Args:
        name: name of the optimizer, used in the warning.
        learning_rate: a number, a schedule, or `None`.
    """
    return scale_by_learning_rate(check.rate_given(name, learning_rate))
