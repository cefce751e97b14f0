"""What everybody agrees on: the types, the pair, the rule, the errors."""

from ._errors import missing as missing, not_a_transformation as not_a_transformation
from ._numbers import (
    fraction as fraction,
    nonnegative as nonnegative,
    number as number,
    period as period,
    positive as positive,
    real as real,
)
from ._rule import Rule as Rule, Step as Step
from ._transformation import (
    AnyTransformation as AnyTransformation,
    as_inner as as_inner,
    EmptyState as EmptyState,
    GradientTransformation as GradientTransformation,
    GradientTransformationExtraArgs as GradientTransformationExtraArgs,
    init_empty_state as init_empty_state,
    stateless as stateless,
    TransformInitFn as TransformInitFn,
    TransformUpdateExtraArgsFn as TransformUpdateExtraArgsFn,
    TransformUpdateFn as TransformUpdateFn,
    with_extra_args_support as with_extra_args_support,
)
from ._types import (
    OptState as OptState,
    Params as Params,
    Real as Real,
    ScalarOrSchedule as ScalarOrSchedule,
    Schedule as Schedule,
    StatefulSchedule as StatefulSchedule,
    Updates as Updates,
)
