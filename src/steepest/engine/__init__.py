"""Runs rules over trees. It alone knows `None`, masks, structures and dtypes."""

from ._apply import (
    apply_updates as apply_updates,
    incremental_update as incremental_update,
    periodic_update as periodic_update,
)
from ._donated import Donated as Donated
from ._dtypes import (
    restore as restore,
    update_dtype as update_dtype,
    wide as wide,
    widen as widen,
)
from ._hold import (
    held as held,
    set_aside as set_aside,
    when as when,
    zeros as zeros,
)
from ._keep import keeping as keeping, optimizer as optimizer
from ._layout import (
    Packed as Packed,
    repack as repack,
    unpack as unpack,
)
from ._leaves import (
    Leaves as Leaves,
    map_leaves as map_leaves,
    map_wide as map_wide,
    MaskedNode as MaskedNode,
    same_shapes as same_shapes,
)
from ._look import (
    handlers as handlers,
    Shown as Shown,
    shown as shown,
    wrapper_info as wrapper_info,
)
from ._loops import branch as branch, loop as loop
from ._masks import Mask as Mask, MaskedState as MaskedState, MaskOrFn as MaskOrFn
from ._packed import (
    pack as pack,
    packed as packed,
    Packing as Packing,
    packing as packing,
)
from ._plan import (
    counting as counting,
    lift as lift,
    nothing as nothing,
    Plan as Plan,
    plan_of as plan_of,
    sequence as sequence,
    still as still,
    under as under,
)
from ._stacks import stacks as stacks
from ._step import make_step as make_step
from ._window import FUNCTIONS_OF_PARAMS as FUNCTIONS_OF_PARAMS
from ._wrap import (
    Decide as Decide,
    WrapperInfo as WrapperInfo,
    wrapping as wrapping,
)
