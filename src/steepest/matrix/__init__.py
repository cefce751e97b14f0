"""Optimizers of the matrices of hidden layers, with AdamW for all other leaves."""

import typing as _typing

from ..core import lazy as _lazy

if _typing.TYPE_CHECKING or not _lazy(globals()):
    from ._adam_mini import (
        adam_mini as adam_mini,
        scale_by_adam_mini as scale_by_adam_mini,
        ScaleByAdamMiniState as ScaleByAdamMiniState,
    )
    from ._apollo import (
        apollo as apollo,
        apollo_mini as apollo_mini,
        scale_by_apollo as scale_by_apollo,
        ScaleByApolloState as ScaleByApolloState,
    )
    from ._fira import (
        fira as fira,
        scale_by_fira as scale_by_fira,
        ScaleByFiraState as ScaleByFiraState,
    )
    from ._muon import (
        muon as muon,
        scale_by_polar as scale_by_polar,
        ScaleByPolarState as ScaleByPolarState,
    )
