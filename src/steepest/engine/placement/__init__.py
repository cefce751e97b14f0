"""Where the state lives: on which devices, and how it is sharded over them."""

import typing as _typing

from ...core import lazy as _lazy

if _typing.TYPE_CHECKING or not _lazy(globals()):
    from ._init import (
        init as init,
        place as place,
    )
    from ._restore_as import (
        restore_as as restore_as,
    )
    from ._shardings import (
        placed_shapes as placed_shapes,
        shardings as shardings,
    )
    from ._streamed import (
        streamed as streamed,
    )
    from ._zero import (
        zero as zero,
        ZeroState as ZeroState,
    )
