"""Memory in few bits, for transformations that are not made of rules."""

from typing import Any

import jax
import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import PyTree

from ...core import (
    GradientTransformationExtraArgs,
    OptState,
    Params,
    Transformation,
    Updates,
)
from ...numerics import Values
from ...tree import key_paths
from ..leaves import decoded, encoded_like, KINDS, LowBits, why_wide
from ..step import WrapperInfo

_MU: dict[str, Values] = {"mu": "signed"}
_BOTH: dict[str, Values] = {"mu": "signed", "nu": "nonnegative"}
# Averages in the states of Optax and of our own wrappers, by class and field. What is
# not in this table stays as it is: it may be a copy of the params.
AVERAGES: dict[str, dict[str, Values]] = {
    "EmaState": {"ema": "signed"},
    "MuonState": _MU,
    "ScaleByAdaDeltaState": {"e_g": "nonnegative", "e_x": "nonnegative"},
    "ScaleByAdamState": _BOTH,
    "ScaleByAmsgradState": {**_BOTH, "nu_max": "nonnegative"},
    "ScaleByBeliefState": _BOTH,
    "ScaleByLionState": _MU,
    "ScaleByRmsState": {"nu": "nonnegative"},
    "ScaleByRmsWithCountState": {"nu": "nonnegative"},
    "ScaleByRssState": {"sum_of_squares": "nonnegative"},
    "ScaleByRStdDevState": _BOTH,
    "ScaleByRStdDevWithCountState": _BOTH,
    "SophiaState": {"mu": "signed", "nu": "signed"},  # a Hessian has both signs
    "TraceState": {"trace": "signed"},
}


def low_bits_of(dtype: DTypeLike | None) -> LowBits | None:
    """The storage with this name; `None` if it is a dtype of real numbers.

    Args:
        dtype: "int8", "int4" or "float8", the dtypes `jnp.int8` and `jnp.int4`, or
            anything else.
    """
    if isinstance(dtype, str):
        return LowBits(dtype) if dtype in KINDS else None
    for name in ("int8", "int4"):
        if dtype is not None and dtype == jnp.dtype(name):
            return LowBits(name)
    return None


def coding(
    tx: GradientTransformationExtraArgs, storage: LowBits
) -> GradientTransformationExtraArgs:
    """`tx`, with the averages in its state in few bits.

    In each step they are decoded for `tx`, and its new state is encoded.

    Args:
        tx: a transformation that is not made of rules.
        storage: the storage.
    """

    def init(params: Params) -> OptState:
        return _coded_state(tx.init(params), storage)

    def update(
        updates: Updates,
        state: OptState,
        params: Params | None = None,
        **extra_args: object,
    ) -> tuple[Updates, OptState]:
        u, new = tx.update(updates, decoded(state), params, **extra_args)
        return u, encoded_like(state, new)

    return Transformation(init, update, WrapperInfo(storage.name, tx, ""))


def _coded_state(state: OptState, storage: LowBits) -> OptState:
    """A state with its averages in few bits."""

    def fields(x: Any) -> dict[str, Values]:
        named = AVERAGES.get(type(x).__name__, {})
        return {k: values for k, values in named.items() if hasattr(x, k)}

    def encode(x: Any) -> PyTree:
        these = fields(x)
        alone = len(these) == 1
        new = {k: coded(getattr(x, k), these[k], alone) for k in these}
        return x._replace(**new) if new else x

    def coded(tree: PyTree, values: Values, alone: bool) -> PyTree:
        leaves, treedef = jax.tree.flatten(tree)
        return treedef.unflatten(
            x if why_wide(path, x) else storage.encode(x, values, alone)
            for path, x in zip(key_paths(tree), leaves, strict=True)
        )

    return jax.tree.map(encode, state, is_leaf=lambda x: bool(fields(x)))
