"""A whole step in one compiled call."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax

from ..core import (
    AnyTransformation,
    OptState,
    Params,
    Updates,
    with_extra_args_support,
)
from ._apply import apply_updates


def make_step(
    tx: AnyTransformation,
) -> Callable[..., tuple[Params, OptState]]:
    """`step(params, state, grads, **extra_args) -> (params, state)`: update and apply.

    Compiled once per structure. The old params and the old state are given up, and
    the new ones written into their memory: do not use them again. They come out in the
    order in which they went in, or XLA would copy every buffer to swap them.

    Args:
        tx: any transformation.

    >>> import jax.numpy as jnp, steepest
    >>> tx = steepest.sgd(0.1)
    >>> step, params = steepest.make_step(tx), jnp.array([1.0, 2.0])
    >>> params, state = step(params, tx.init(params), jnp.array([1.0, 1.0]))
    >>> [round(x, 3) for x in params.tolist()]
    [0.9, 1.9]
    """
    update = with_extra_args_support(tx).update

    @partial(jax.jit, donate_argnums=(0, 1))
    def step(
        params: Params, state: OptState, grads: Updates, **extra_args: Any
    ) -> tuple[Params, OptState]:
        updates, state = update(grads, state, params, **extra_args)
        return apply_updates(params, updates), state

    return step
