"""Runs rules over trees. It alone knows `None`, masks, structures and dtypes."""

from ._apply import (
    apply_updates as apply_updates,
    incremental_update as incremental_update,
    periodic_update as periodic_update,
)
from ._dtypes import (
    restore as restore,
    update_dtype as update_dtype,
    wide as wide,
    widen as widen,
)
from ._leaves import (
    Leaves as Leaves,
    map_leaves as map_leaves,
    map_wide as map_wide,
    MaskedNode as MaskedNode,
)
from ._loops import branch as branch, loop as loop
from ._masks import Mask as Mask, MaskedState as MaskedState, MaskOrFn as MaskOrFn
from ._plan import (
    lift as lift,
    nothing as nothing,
    Plan as Plan,
    plan_of as plan_of,
    sequence as sequence,
    under as under,
)
from ._step import make_step as make_step
from ._wrap import (
    all_finite as all_finite,
    when as when,
    wrapping as wrapping,
    zeros as zeros,
)
