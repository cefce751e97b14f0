"""Optimizers of the matrices of hidden layers, with AdamW for all other leaves."""

import typing as _typing

from ..core import lazy as _lazy

if _typing.TYPE_CHECKING or not _lazy(globals()):
    from ._muon import (
        muon as muon,
        scale_by_polar as scale_by_polar,
        ScaleByPolarState as ScaleByPolarState,
    )
    from ._shampoo import (
        scale_by_shampoo as scale_by_shampoo,
        ScaleByKlShampooState as ScaleByKlShampooState,
        ScaleByShampooState as ScaleByShampooState,
        shampoo as shampoo,
    )
    from ._soap import (
        scale_by_soap as scale_by_soap,
        ScaleByKlSoapState as ScaleByKlSoapState,
        ScaleBySoapState as ScaleBySoapState,
        soap as soap,
    )
