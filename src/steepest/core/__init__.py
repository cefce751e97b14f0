"""Types, transformations, rules and errors: what every other room builds on."""

import typing as _typing

from ._lazy import lazy as _lazy

if _typing.TYPE_CHECKING or not _lazy(globals()):
    from ._call import (
        Call as Call,
        call_of as call_of,
        OPERANDS as OPERANDS,
    )
    from ._calling import called_by_user as called_by_user, passed as passed
    from ._deprecated import deprecated as deprecated
    from ._equations import evaluated as evaluated
    from ._errors import (
        missing as missing,
        not_a_transformation as not_a_transformation,
        ShardedLeaf as ShardedLeaf,
        unusual as unusual,
        UnusualValueWarning as UnusualValueWarning,
        warn as warn,
    )
    from ._lazy import lazy as lazy
    from ._like_optax import (
        like_optax as like_optax,
    )
    from ._mesh import (
        AxisName as AxisName,
        mesh_axes as mesh_axes,
        MeshAxes as MeshAxes,
    )
    from ._recent import Recent as Recent
    from ._rule import (
        At as At,
        Every as Every,
        gives as gives,
        is_schedule as is_schedule,
        Matrix as Matrix,
        Measure as Measure,
        only_real as only_real,
        PerStep as PerStep,
        Rule as Rule,
    )
    from ._schedule import MadeSchedule as MadeSchedule, schedule as schedule
    from ._signature import call_by_name as call_by_name, names_of as names_of
    from ._static import Static as Static
    from ._transformation import (
        AnyTransformation as AnyTransformation,
        as_inner as as_inner,
        EmptyState as EmptyState,
        GradientTransformation as GradientTransformation,
        GradientTransformationExtraArgs as GradientTransformationExtraArgs,
        init_empty_state as init_empty_state,
        stateless as stateless,
        Transformation as Transformation,
        transformation as transformation,
        TransformInitFn as TransformInitFn,
        TransformUpdateExtraArgsFn as TransformUpdateExtraArgsFn,
        TransformUpdateFn as TransformUpdateFn,
        Update as Update,
        with_extra_args_support as with_extra_args_support,
    )
    from ._types import (
        OptState as OptState,
        Param as Param,
        Params as Params,
        Real as Real,
        ScalarOrSchedule as ScalarOrSchedule,
        Schedule as Schedule,
        StatefulSchedule as StatefulSchedule,
        Updates as Updates,
    )
    from ._written import shown_arguments as shown_arguments, written as written
