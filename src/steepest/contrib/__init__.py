"""Named algorithms and wrappers that Optax keeps in its `contrib`."""

import typing as _typing

from ..core import lazy as _lazy

if _typing.TYPE_CHECKING or not _lazy(globals()):
    from ._acprop import acprop as acprop, scale_by_acprop as scale_by_acprop
    from ._ademamix import (
        ademamix as ademamix,
        scale_by_ademamix as scale_by_ademamix,
        ScaleByAdemamixState as ScaleByAdemamixState,
    )
    from ._adopt import adopt as adopt, scale_by_adopt as scale_by_adopt
    from ._cocob import (
        cocob as cocob,
        COCOBState as COCOBState,
        scale_by_cocob as scale_by_cocob,
    )
    from ._dadapt_adamw import (
        dadapt_adamw as dadapt_adamw,
        DAdaptAdamWState as DAdaptAdamWState,
    )
    from ._dog import dog as dog, DoGState as DoGState
    from ._dowg import dowg as dowg, DoWGState as DoWGState
    from ._galore import (
        galore as galore,
        GaLoreDimensionNumbers as GaLoreDimensionNumbers,
        GaLoreState as GaLoreState,
        scale_by_galore as scale_by_galore,
    )
    from ._madgrad import (
        madgrad as madgrad,
        MadgradState as MadgradState,
        scale_by_madgrad as scale_by_madgrad,
    )
    from ._mechanic import MechanicState as MechanicState, mechanize as mechanize
    from ._momo import (
        momo as momo,
        momo_adam as momo_adam,
        MomoAdamState as MomoAdamState,
        MomoState as MomoState,
    )
    from ._muon import (
        muon as muon,
        MuonDimensionNumbers as MuonDimensionNumbers,
        MuonState as MuonState,
        scale_by_muon as scale_by_muon,
    )
    from ._privacy import (
        differentially_private_aggregate as differentially_private_aggregate,
        DifferentiallyPrivateAggregateState as DifferentiallyPrivateAggregateState,
        dpsgd as dpsgd,
    )
    from ._prodigy import prodigy as prodigy, ProdigyState as ProdigyState
    from ._reduce_on_plateau import (
        reduce_on_plateau as reduce_on_plateau,
        ReduceLROnPlateauState as ReduceLROnPlateauState,
    )
    from ._sam import (
        normalize as normalize,
        NormalizeState as NormalizeState,
        sam as sam,
        SAMState as SAMState,
    )
    from ._schedule_free import (
        schedule_free as schedule_free,
        schedule_free_adamw as schedule_free_adamw,
        schedule_free_eval_params as schedule_free_eval_params,
        schedule_free_sgd as schedule_free_sgd,
        ScheduleFreeState as ScheduleFreeState,
    )
    from ._simplified_ademamix import (
        scale_by_simplified_ademamix as scale_by_simplified_ademamix,
        ScaleBySimplifiedAdEMAMixState as ScaleBySimplifiedAdEMAMixState,
        simplified_ademamix as simplified_ademamix,
    )
    from ._sophia import (
        hutchinson_estimator_diag_hessian as hutchinson_estimator_diag_hessian,
        HutchinsonState as HutchinsonState,
        sophia as sophia,
        SophiaState as SophiaState,
    )
    from ._split_real_and_imaginary import (
        split_real_and_imaginary as split_real_and_imaginary,
        SplitRealAndImaginaryArrays as SplitRealAndImaginaryArrays,
        SplitRealAndImaginaryState as SplitRealAndImaginaryState,
    )
