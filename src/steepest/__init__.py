"""steepest: gradient transformations and optimizers for JAX."""

from . import (
    combine as combine,
    core as core,
    decoupled as decoupled,
    engine as engine,
    numerics as numerics,
    optimizers as optimizers,
    schedules as schedules,
    transforms as transforms,
    tree as tree,
)
from .combine import (
    chain as chain,
    lookahead as lookahead,
    LookaheadParams as LookaheadParams,
    LookaheadState as LookaheadState,
    masked as masked,
    named_chain as named_chain,
)
from .core import (
    EmptyState as EmptyState,
    GradientTransformation as GradientTransformation,
    GradientTransformationExtraArgs as GradientTransformationExtraArgs,
    init_empty_state as init_empty_state,
    OptState as OptState,
    Params as Params,
    Rule as Rule,
    ScalarOrSchedule as ScalarOrSchedule,
    Schedule as Schedule,
    StatefulSchedule as StatefulSchedule,
    stateless as stateless,
    TransformInitFn as TransformInitFn,
    TransformUpdateExtraArgsFn as TransformUpdateExtraArgsFn,
    TransformUpdateFn as TransformUpdateFn,
    Updates as Updates,
    with_extra_args_support as with_extra_args_support,
)
from .engine import (
    apply_updates as apply_updates,
    incremental_update as incremental_update,
    lift as lift,
    make_step as make_step,
    MaskedNode as MaskedNode,
    MaskedState as MaskedState,
    periodic_update as periodic_update,
)
from .optimizers import (
    adam as adam,
    adamw as adamw,
    lion as lion,
    nadam as nadam,
    nadamw as nadamw,
    nag as nag,
    NagState as NagState,
    scale_by_adam as scale_by_adam,
    scale_by_lion as scale_by_lion,
    ScaleByAdamState as ScaleByAdamState,
    ScaleByLionState as ScaleByLionState,
    sgd as sgd,
)
from .schedules import (
    constant_schedule as constant_schedule,
    cosine_decay_schedule as cosine_decay_schedule,
    join_schedules as join_schedules,
    linear_schedule as linear_schedule,
    polynomial_schedule as polynomial_schedule,
    warmup_cosine_decay_schedule as warmup_cosine_decay_schedule,
)
from .transforms import (
    add_decayed_weights as add_decayed_weights,
    clip as clip,
    clip_by_global_norm as clip_by_global_norm,
    identity as identity,
    scale as scale,
    scale_by_learning_rate as scale_by_learning_rate,
    scale_by_schedule as scale_by_schedule,
    ScaleByScheduleState as ScaleByScheduleState,
    set_to_zero as set_to_zero,
    stateless_with_tree_map as stateless_with_tree_map,
    trace as trace,
    TraceState as TraceState,
    WeightDecaySchedule as WeightDecaySchedule,
)

__version__ = "0.1.0"
