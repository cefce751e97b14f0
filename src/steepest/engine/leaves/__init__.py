"""Trees as lists of leaves, with their masks and dtypes."""

import typing as _typing

from ...core import lazy as _lazy

if _typing.TYPE_CHECKING or not _lazy(globals()):
    from ._batches import (
        alike as alike,
        batches as batches,
        Leaf as Leaf,
    )
    from ._dtypes import (
        decoded as decoded,
        encoded_like as encoded_like,
        mixing as mixing,
        plus as plus,
        restore as restore,
        restore_like as restore_like,
        update_dtype as update_dtype,
        wide as wide,
        wide_dtype_of as wide_dtype_of,
        widen as widen,
        widen_all as widen_all,
    )
    from ._leaves import (
        Leaves as Leaves,
        map_leaves as map_leaves,
        map_wide as map_wide,
        MaskedNode as MaskedNode,
        same_shapes as same_shapes,
        zeros_for_none as zeros_for_none,
    )
    from ._low_bits import (
        KINDS as KINDS,
        LowBits as LowBits,
        why_wide as why_wide,
    )
    from ._masks import (
        Mask as Mask,
        MaskedState as MaskedState,
        MaskOrFn as MaskOrFn,
        View as View,
        view_through as view_through,
    )
    from ._stacked import (
        collected as collected,
        dealt as dealt,
        Stacked as Stacked,
        StackLayout as StackLayout,
        unstacked as unstacked,
    )
    from ._window import (
        FUNCTIONS_OF_PARAMS as FUNCTIONS_OF_PARAMS,
        Window as Window,
    )
