"""Names that have moved from `steepest` to `steepest.contrib`."""

from ..core import deprecated
from ._privacy import (
    differentially_private_aggregate,
    DifferentiallyPrivateAggregateState,
    dpsgd,
)

_MOVED = (differentially_private_aggregate, DifferentiallyPrivateAggregateState, dpsgd)

__getattr__ = deprecated(
    "steepest", {x.__name__: (x, f"steepest.contrib.{x.__name__}") for x in _MOVED}
)
