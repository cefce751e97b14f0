"""Transformations made of transformations."""

import typing as _typing

from ..core import lazy as _lazy

if _typing.TYPE_CHECKING or not _lazy(globals()):
    from ._blocked import blocked as blocked
    from ._cautious import cautious as cautious
    from ._chain import chain as chain, named_chain as named_chain
    from ._compensated import (
        compensated as compensated,
        CompensatedState as CompensatedState,
    )
    from ._conditions import (
        apply_if_finite as apply_if_finite,
        ApplyIfFiniteState as ApplyIfFiniteState,
        conditionally_mask as conditionally_mask,
        conditionally_transform as conditionally_transform,
        ConditionallyMaskState as ConditionallyMaskState,
        ConditionallyTransformState as ConditionallyTransformState,
        ConditionFn as ConditionFn,
    )
    from ._describe import describe as describe, Description as Description
    from ._flatten import flatten as flatten
    from ._guard import guard as guard, GuardState as GuardState
    from ._hyperball import hyperball as hyperball, HyperballState as HyperballState
    from ._lookahead import (
        lookahead as lookahead,
        LookaheadParams as LookaheadParams,
        LookaheadState as LookaheadState,
    )
    from ._mars import mars as mars, MarsState as MarsState
    from ._masked import masked as masked
    from ._metrics import metrics as metrics
    from ._multi_steps import (
        MultiSteps as MultiSteps,
        MultiStepsState as MultiStepsState,
        ShouldSkipUpdateFunction as ShouldSkipUpdateFunction,
    )
    from ._offload import offload as offload
    from ._partition import (
        partition as partition,
        PartitionState as PartitionState,
    )
    from ._read import read as read
    from ._route import route as route
    from ._skips import (
        skip_large_updates as skip_large_updates,
        skip_not_finite as skip_not_finite,
    )
    from ._stochastic_rounding import (
        stochastic_rounding as stochastic_rounding,
        StochasticRoundingState as StochasticRoundingState,
    )
    from ._watched import watched as watched, WatchedState as WatchedState
    from ._wide_params import (
        from_wide_params as from_wide_params,
        wide_params as wide_params,
    )
