"""Optimizers of the matrices of hidden layers, with AdamW for all other leaves."""

import typing as _typing

from ..core import lazy as _lazy

if _typing.TYPE_CHECKING or not _lazy(globals()):
    from ._muon import (
        muon as muon,
        scale_by_polar as scale_by_polar,
        ScaleByPolarState as ScaleByPolarState,
    )
    from ._soap import (
        scale_by_soap as scale_by_soap,
        ScaleBySoapState as ScaleBySoapState,
        soap as soap,
    )
    from ._soap_muon import (
        scale_by_soap_muon as scale_by_soap_muon,
        ScaleBySoapMuonState as ScaleBySoapMuonState,
        soap_muon as soap_muon,
    )
    from ._splus import (
        scale_by_splus as scale_by_splus,
        ScaleBySplusState as ScaleBySplusState,
        splus as splus,
    )
