"""How a state is stored: in another dtype, or packed into vectors."""

import typing as _typing

from ...core import lazy as _lazy

if _typing.TYPE_CHECKING or not _lazy(globals()):
    from ._keep import (
        keeping as keeping,
        optimizer as optimizer,
    )
    from ._layout import (
        Packed as Packed,
        repack as repack,
        unpack as unpack,
    )
    from ._packed import (
        pack as pack,
        packed as packed,
        Packing as Packing,
        packing as packing,
    )
