"""Optimizers of the matrices of hidden layers, and of all other leaves beside them."""

import typing as _typing

from ..core import lazy as _lazy

if _typing.TYPE_CHECKING or not _lazy(globals()):
    from ._adam_mini import (
        adam_mini as adam_mini,
        scale_by_adam_mini as scale_by_adam_mini,
        ScaleByAdamMiniState as ScaleByAdamMiniState,
    )
    from ._adamuon import (
        adamuon as adamuon,
        scale_by_adamuon as scale_by_adamuon,
        ScaleByAdaMuonState as ScaleByAdaMuonState,
    )
    from ._apollo import (
        apollo as apollo,
        apollo_mini as apollo_mini,
        scale_by_apollo as scale_by_apollo,
        ScaleByApolloState as ScaleByApolloState,
    )
    from ._dion2 import (
        dion2 as dion2,
        scale_by_dion2 as scale_by_dion2,
        ScaleByDion2State as ScaleByDion2State,
    )
    from ._fira import (
        fira as fira,
        scale_by_fira as scale_by_fira,
        ScaleByFiraState as ScaleByFiraState,
    )
    from ._hyperball import adam_h as adam_h, muon_h as muon_h
    from ._kron import (
        kron as kron,
        scale_by_kron as scale_by_kron,
        ScaleByKronState as ScaleByKronState,
    )
    from ._lmo import (
        scale_by_lmo as scale_by_lmo,
        ScaleByLmoState as ScaleByLmoState,
    )
    from ._muon import (
        muon as muon,
        scale_by_polar as scale_by_polar,
        ScaleByPolarState as ScaleByPolarState,
    )
    from ._normuon import (
        normuon as normuon,
        scale_by_normuon as scale_by_normuon,
        ScaleByNorMuonState as ScaleByNorMuonState,
    )
    from ._psgd import (
        psgd as psgd,
        scale_by_psgd as scale_by_psgd,
        ScaleByPsgdState as ScaleByPsgdState,
    )
    from ._qk_clip import qk_clip as qk_clip
    from ._scion import scion as scion, scion_init as scion_init
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
