"""Schedules: functions from the step count to a number."""

import typing as _typing

from ..core import lazy as _lazy

if _typing.TYPE_CHECKING or not _lazy(globals()):
    from ..core import Schedule as Schedule, StatefulSchedule as StatefulSchedule
    from ._decay import (
        constant_schedule as constant_schedule,
        cosine_decay_schedule as cosine_decay_schedule,
        linear_schedule as linear_schedule,
        polynomial_schedule as polynomial_schedule,
    )
    from ._exponential import exponential_decay as exponential_decay
    from ._inject import (
        inject_hyperparams as inject_hyperparams,
        inject_stateful_hyperparams as inject_stateful_hyperparams,
        InjectHyperparamsState as InjectHyperparamsState,
        InjectStatefulHyperparamsState as InjectStatefulHyperparamsState,
    )
    from ._join import join_schedules as join_schedules
    from ._onecycle import (
        cosine_onecycle_schedule as cosine_onecycle_schedule,
        linear_onecycle_schedule as linear_onecycle_schedule,
    )
    from ._piecewise import (
        piecewise_constant_schedule as piecewise_constant_schedule,
        piecewise_interpolate_schedule as piecewise_interpolate_schedule,
    )
    from ._warmup import (
        sgdr_schedule as sgdr_schedule,
        warmup_constant_schedule as warmup_constant_schedule,
        warmup_cosine_decay_schedule as warmup_cosine_decay_schedule,
        warmup_exponential_decay_schedule as warmup_exponential_decay_schedule,
    )
    from ._wrapped import (
        WrappedSchedule as WrappedSchedule,
        WrappedScheduleState as WrappedScheduleState,
    )
    from ._wsd import wsd as wsd
