"""Runs rules over trees. Only this room handles `None`, masks and dtypes."""

import typing as _typing

from ..core import lazy as _lazy

if _typing.TYPE_CHECKING or not _lazy(globals()):
    from ._cost import flops as flops
    from ._flops import flops_of as flops_of
    from ._inspect import (
        handlers as handlers,
        kept_wide as kept_wide,
        notes as notes,
        resharded as resharded,
        Shown as Shown,
        shown as shown,
        wrapper_info as wrapper_info,
    )
    from ._resolution import unresolved as unresolved
    from .leaves import (
        decoded as decoded,
        encoded_like as encoded_like,
        FUNCTIONS_OF_PARAMS as FUNCTIONS_OF_PARAMS,
        Leaves as Leaves,
        map_leaves as map_leaves,
        map_wide as map_wide,
        Mask as Mask,
        MaskedNode as MaskedNode,
        MaskedState as MaskedState,
        MaskOrFn as MaskOrFn,
        plus as plus,
        restore as restore,
        same_shapes as same_shapes,
        unstacked as unstacked,
        update_dtype as update_dtype,
        wide as wide,
        widen as widen,
        zeros_for_none as zeros_for_none,
    )
    from .placement import (
        init as init,
        place as place,
        placed_shapes as placed_shapes,
        restore_as as restore_as,
        shardings as shardings,
        streamed as streamed,
        zero as zero,
        ZeroState as ZeroState,
    )
    from .run import (
        counting as counting,
        frozen as frozen,
        Landed as Landed,
        lift as lift,
        masked_plan as masked_plan,
        nothing as nothing,
        Plan as Plan,
        plan_of as plan_of,
        sequence as sequence,
        stacks as stacks,
    )
    from .step import (
        apply_updates as apply_updates,
        branch as branch,
        Decide as Decide,
        Donated as Donated,
        incremental_update as incremental_update,
        loop as loop,
        make_step as make_step,
        periodic_update as periodic_update,
        selected as selected,
        stepping as stepping,
        when as when,
        WrapperInfo as WrapperInfo,
        wrapping as wrapping,
        zeros as zeros,
    )
    from .storage import (
        keeping as keeping,
        optimizer as optimizer,
        pack as pack,
        Packed as Packed,
        packed as packed,
        Packing as Packing,
        packing as packing,
        repack as repack,
        unpack as unpack,
    )
