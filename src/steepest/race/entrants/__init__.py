"""Optimizers and schedules written as text, which is parsed and never evaluated."""

from ._expressions import (
    entrant as entrant,
    schedule_of as schedule_of,
    split_list as split_list,
    tidy as tidy,
    transformation_of as transformation_of,
)
from ._line import brief as brief
from ._names import Entrant as Entrant, Known as Known, optimizers as optimizers
