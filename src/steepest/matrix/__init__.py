"""Optimizers of the matrices of hidden layers, with AdamW for all other leaves."""

import typing as _typing

from ..core import lazy as _lazy

if _typing.TYPE_CHECKING or not _lazy(globals()):
    from ._kron import (
        kron as kron,
        scale_by_kron as scale_by_kron,
        ScaleByKronState as ScaleByKronState,
    )
    from ._muon import (
        muon as muon,
        scale_by_polar as scale_by_polar,
        ScaleByPolarState as ScaleByPolarState,
    )
    from ._psgd import (
        psgd as psgd,
        scale_by_psgd as scale_by_psgd,
        ScaleByPsgdState as ScaleByPsgdState,
    )
    from ._soap import (
        scale_by_soap as scale_by_soap,
        ScaleBySoapState as ScaleBySoapState,
        soap as soap,
    )
