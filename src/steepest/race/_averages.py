"""Optimizers that are evaluated at other params than they train: averages of them."""

import warnings
from collections.abc import Callable
from functools import partial
from typing import Literal

import jax
import jax.numpy as jnp

import steepest
from steepest import contrib

from ._problem import Params

Average = Literal["lookahead", "schedule-free"]
_FREE = contrib.ScheduleFreeState._fields  # as those of Optax's state
_KINDS: dict[Average, Callable[[object], bool]] = {
    "lookahead": lambda x: isinstance(x, steepest.LookaheadState),
    "schedule-free": lambda x: getattr(x, "_fields", None) == _FREE,
}
# What a program must do besides making the optimizer, as Python comments.
_USE: dict[Average | None, str] = {
    "lookahead": (
        "# Before tx.init: params = steepest.LookaheadParams.init_synced(params).\n"
        "# Take gradients at params.fast, evaluate at params.slow."
    ),
    "schedule-free": (
        "# Evaluate at steepest.contrib.schedule_free_eval_params(state, params)."
    ),
    None: "",
}


def average_of(state: steepest.OptState) -> Average | None:
    """Which average of the params to evaluate; `None` for the params themselves.

    Args:
        state: of an optimizer, which may be inside others.
    """
    for average, is_kind in _KINDS.items():
        if any(map(is_kind, jax.tree.leaves(state, is_leaf=is_kind))):
            return average
    return None


def begun(
    tx: steepest.GradientTransformation, params: Params
) -> tuple[Params, steepest.OptState]:
    """The params that the optimizer trains, and its first state.

    Args:
        tx: an optimizer.
        params: the initial params of the model.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # lookahead warns about plain params
        state = tx.init(params)
    if average_of(state) != "lookahead":
        return params, state
    params = steepest.LookaheadParams.init_synced(params)
    return params, tx.init(params)


def evaluated_params(params: Params, state: steepest.OptState) -> Params:
    """The params to evaluate: slow for lookahead, averaged for schedule-free.

    Args:
        params: in training.
        state: of the optimizer.
    """
    match average_of(state):
        case "lookahead":
            return params.slow
        case "schedule-free":
            return contrib.schedule_free_eval_params(state, params)
        case _:
            return params


def use_of(tx: steepest.GradientTransformation) -> str:
    """What a program must do to train as the race did, as comments; mostly nothing.

    Args:
        tx: an optimizer.
    """
    shape = lambda *sizes: jax.ShapeDtypeStruct(sizes, jnp.float32)
    params = {"weight": shape(2, 2), "bias": shape(2)}  # any will do
    try:
        _, state = jax.eval_shape(partial(begun, tx), params)
    except Exception:  # made for other params, as with one label for each leaf
        return ""
    return _USE[average_of(state)]
