"""Transformations made of transformations."""

from ._chain import chain as chain, named_chain as named_chain
from ._conditions import (
    apply_if_finite as apply_if_finite,
    ApplyIfFiniteState as ApplyIfFiniteState,
    conditionally_mask as conditionally_mask,
    conditionally_transform as conditionally_transform,
    ConditionallyMaskState as ConditionallyMaskState,
    ConditionallyTransformState as ConditionallyTransformState,
    ConditionFn as ConditionFn,
)
from ._flatten import flatten as flatten
from ._lookahead import (
    lookahead as lookahead,
    LookaheadParams as LookaheadParams,
    LookaheadState as LookaheadState,
)
from ._masked import masked as masked
from ._multi_steps import (
    MultiSteps as MultiSteps,
    MultiStepsState as MultiStepsState,
    ShouldSkipUpdateFunction as ShouldSkipUpdateFunction,
    skip_large_updates as skip_large_updates,
    skip_not_finite as skip_not_finite,
)
from ._partition import (
    partition as partition,
    PartitionState as PartitionState,
)
