"""How a state is stored: in another dtype, or packed into vectors."""

import typing as _typing

from ...core import lazy as _lazy

if _typing.TYPE_CHECKING or not _lazy(globals()):
    from ._keep import (
        keeping as keeping,
        optimizer as optimizer,
    )
    from ._layout import (
        is_joined as is_joined,
        layouts_in as layouts_in,
        Packed as Packed,
        repack as repack,
        unpack as unpack,
        unpack_but as unpack_but,
    )
    from ._packed import (
        pack as pack,
        packed as packed,
        Packing as Packing,
        packing as packing,
    )
