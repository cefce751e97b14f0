"""Process a large batch as a sequence of microbatches."""

import typing as _typing

from ..core import lazy as _lazy

if _typing.TYPE_CHECKING or not _lazy(globals()):
    from ._accumulators import (
        AccumulationType as AccumulationType,
        Accumulator as Accumulator,
    )
    from ._micro_vmap import micro_grad as micro_grad, micro_vmap as micro_vmap
    from ._microbatch import (
        microbatch as microbatch,
        reshape_batch_axis as reshape_batch_axis,
    )
