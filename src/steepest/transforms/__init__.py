"""General-purpose transformations: clipping, scaling, momentum, noise, weight decay."""

import typing as _typing

from ..core import lazy as _lazy

if _typing.TYPE_CHECKING or not _lazy(globals()):
    from ..combine import (
        apply_if_finite as apply_if_finite,
        ApplyIfFiniteState as ApplyIfFiniteState,
        chain as chain,
        conditionally_mask as conditionally_mask,
        conditionally_transform as conditionally_transform,
        ConditionallyMaskState as ConditionallyMaskState,
        ConditionallyTransformState as ConditionallyTransformState,
        ConditionFn as ConditionFn,
        flatten as flatten,
        masked as masked,
        MultiSteps as MultiSteps,
        MultiStepsState as MultiStepsState,
        named_chain as named_chain,
        partition as partition,
        PartitionState as PartitionState,
        ShouldSkipUpdateFunction as ShouldSkipUpdateFunction,
        skip_large_updates as skip_large_updates,
        skip_not_finite as skip_not_finite,
    )
    from ..core import EmptyState as NonNegativeParamsState  # noqa: F401  (a second name)
    from ..engine import MaskedNode as MaskedNode, MaskedState as MaskedState
    from ._adaptive_grad_clip import (
        adaptive_grad_clip as adaptive_grad_clip,
        unitwise_clip as unitwise_clip,
        unitwise_norm as unitwise_norm,
    )
    from ._apply_every import apply_every as apply_every, ApplyEvery as ApplyEvery
    from ._centralize import centralize as centralize
    from ._clip import clip as clip, clip_by_global_norm as clip_by_global_norm
    from ._clip_by_block import clip_by_block_rms as clip_by_block_rms
    from ._distance_over_gradients import (
        scale_by_distance_over_gradients as scale_by_distance_over_gradients,
        ScaleByDistanceOverGradientsState as ScaleByDistanceOverGradientsState,
    )
    from ._ema import ema as ema, EmaState as EmaState
    from ._ema_params import (
        ema_eval_params as ema_eval_params,
        ema_params as ema_params,
        EmaParamsState as EmaParamsState,
    )
    from ._freeze import freeze as freeze, selective_transform as selective_transform
    from ._identity import (
        identity as identity,
        set_to_zero as set_to_zero,
        stateless_with_tree_map as stateless_with_tree_map,
    )
    from ._measure import (
        measure_with_ema as measure_with_ema,
        monitor as monitor,
        MonitorState as MonitorState,
        snapshot as snapshot,
        SnapshotState as SnapshotState,
    )
    from ._noise import add_noise as add_noise, AddNoiseState as AddNoiseState
    from ._nonnegative import keep_params_nonnegative as keep_params_nonnegative
    from ._normalize import normalize_by_update_norm as normalize_by_update_norm
    from ._param_block import (
        scale_by_param_block_norm as scale_by_param_block_norm,
        scale_by_param_block_rms as scale_by_param_block_rms,
    )
    from ._per_example import (
        per_example_global_norm_clip as per_example_global_norm_clip,
        per_example_layer_norm_clip as per_example_layer_norm_clip,
    )
    from ._scale import (
        scale as scale,
        scale_by_learning_rate as scale_by_learning_rate,
        scale_by_schedule as scale_by_schedule,
        ScaleByScheduleState as ScaleByScheduleState,
    )
    from ._trace import trace as trace, TraceState as TraceState
    from ._trust_ratio import scale_by_trust_ratio as scale_by_trust_ratio
    from ._weight_decay import (
        add_cautious_weight_decay as add_cautious_weight_decay,
        add_decayed_weights as add_decayed_weights,
        WeightDecaySchedule as WeightDecaySchedule,
    )
    from ._zero_nans import zero_nans as zero_nans, ZeroNansState as ZeroNansState
