"""Transformations that nobody's paper owns."""

from ._clip import clip as clip, clip_by_global_norm as clip_by_global_norm
from ._identity import (
    identity as identity,
    set_to_zero as set_to_zero,
    stateless_with_tree_map as stateless_with_tree_map,
)
from ._scale import (
    scale as scale,
    scale_by_learning_rate as scale_by_learning_rate,
    scale_by_schedule as scale_by_schedule,
    ScaleByScheduleState as ScaleByScheduleState,
)
from ._trace import trace as trace, TraceState as TraceState
from ._weight_decay import (
    add_decayed_weights as add_decayed_weights,
    WeightDecaySchedule as WeightDecaySchedule,
)
