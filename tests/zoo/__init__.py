"""Every public optimizer, once, and the transformations they are made of.

The laws use this list, and there is no other list of optimizers. The properties of a
row are data.
"""

from . import (
    _adaptive,
    _contrib_rates,
    _contrib_shapes,
    _house,
    _layerwise,
    _lean,
    _linesearch,
    _muons,
    _psgd,
    _riders,
    _shampoo,
    _soap,
    _splus,
    _wrappers,
)
from ._row import (
    fed as fed,
    few_params as few_params,
    gradients as gradients,
    over as over,
    params as params,
    potential as potential,
    Row as Row,
    typeof as typeof,
    with_bare_keys as with_bare_keys,
)

_FILES = [_house, _adaptive, _wrappers, _contrib_rates, _contrib_shapes, _layerwise]
_FILES += [_linesearch, _lean, _muons, _psgd, _riders, _shampoo, _soap, _splus]
ZOO = [row for file in _FILES for row in file.OPTIMIZERS]
PARTS = [row for file in _FILES for row in file.PARTS]

# `scale_by_x` -> the optimizer that contains it, on which expensive tests run.
_INSIDE = {
    "acprop": "acprop",
    "adadelta": "adadelta",
    "adam": "adam",
    "adamax": "adamax",
    "adan": "adan",
    "ademamix": "ademamix",
    "adopt": "adopt",
    "amsgrad": "amsgrad",
    "belief": "adabelief",
    "cocob": "cocob",
    "factored_rms": "adafactor_factored",
    "lbfgs": "lbfgs",
    "lion": "lion",
    "madgrad": "madgrad",
    "novograd": "novograd",
    "optimistic_gradient": "optimistic_gradient_descent",
    "polyak": "polyak_sgd",
    "radam": "radam",
    "rms": "rmsprop",
    "rprop": "rprop",
    "rss": "adagrad",
    "sign": "sign_sgd",
    "simplified_ademamix": "simplified_ademamix",
    "sm3": "sm3",
    "stddev": "rmsprop_centered",
    "yogi": "yogi",
}
_names = {row.name for row in ZOO}
assert set(_INSIDE.values()) <= _names
_within = {f"scale_by_{name}" for name in _INSIDE}
DISTINCT = ZOO + [row for row in PARTS if row.name not in _within]

everyone = over(ZOO + PARTS)
distinct = over([row for row in DISTINCT if not row.light])
optimizers = over([row for row in ZOO if not row.light])
