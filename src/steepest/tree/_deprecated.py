"""Deprecated names of these functions in `tree_utils`."""

from functools import partial

from ..core import deprecated
from ._arithmetic import add_scale, scale
from ._reductions import norm

_THERE = "steepest.tree_utils"

__getattr__ = deprecated(
    _THERE,
    {
        "tree_scalar_mul": (scale, f"{_THERE}.tree_scale"),
        "tree_add_scalar_mul": (add_scale, f"{_THERE}.tree_add_scale"),
        "tree_l1_norm": (partial(norm, ord=1), f"{_THERE}.tree_norm(..., ord=1)"),
        "tree_l2_norm": (partial(norm, ord=2), f"{_THERE}.tree_norm"),
        "tree_linf_norm": (
            partial(norm, ord="inf"),
            f"{_THERE}.tree_norm(..., ord='inf')",
        ),
    },
)
