"""Functions from the step to a number."""

from ._decay import (
    constant_schedule as constant_schedule,
    cosine_decay_schedule as cosine_decay_schedule,
    linear_schedule as linear_schedule,
    polynomial_schedule as polynomial_schedule,
)
from ._join import (
    join_schedules as join_schedules,
    warmup_cosine_decay_schedule as warmup_cosine_decay_schedule,
)
