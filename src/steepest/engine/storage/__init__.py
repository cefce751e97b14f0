"""How memory is kept: in another dtype, or packed."""

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
