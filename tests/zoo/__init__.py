"""Every public optimizer, once, and the transformations they are made of.

The laws read this, and nothing else lists optimizers. What a row can do is data.
"""

from . import (
    _adaptive,
    _contrib_rates,
    _contrib_shapes,
    _house,
    _layerwise,
    _linesearch,
    _wrappers,
)
from ._row import (
    gradients as gradients,
    over as over,
    params as params,
    potential as potential,
    Row as Row,
    typeof as typeof,
)

_FILES = [_house, _adaptive, _wrappers, _contrib_rates, _contrib_shapes, _layerwise]
_FILES += [_linesearch]
ZOO = [row for file in _FILES for row in file.OPTIMIZERS]
PARTS = [row for file in _FILES for row in file.PARTS]

everyone = over(ZOO + PARTS)
optimizers = over(ZOO)
