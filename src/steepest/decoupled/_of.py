"""Any gradient transformation as a decoupled rule."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
from jaxtyping import PyTree

from ..combine import LookaheadParams
from ..core import AnyTransformation, as_inner, OptState
from ..engine import apply_updates, same_shapes
from ._compiled import Fixed, split, Stepped


class Decoupled(NamedTuple):
    """An update rule for adjustments from any source.

    init(theta) -> opt_params
    step(opt_params, theta, updates) -> (opt_params, theta)
    """

    init: Callable[[PyTree], OptState]
    step: Callable[..., Stepped]


def of(tx: AnyTransformation) -> Decoupled:
    """Turn an optimizer into a decoupled rule, whose `step` is compiled.

    Args:
        tx: any transformation that ends with the learning rate, as optimizers do. The
            rule has the state of `tx`, and `step` passes extra arguments to it,
            including functions. For `lookahead`, `theta` is a `LookaheadParams`, and
            `updates` are those of `fast`.

    >>> import jax.numpy as jnp, steepest
    >>> init, step = of(steepest.lion(0.1, weight_decay=0.0))
    >>> theta = [jnp.array([3.0])]
    >>> state, theta = step(init(theta), theta, [jnp.array([7.0])])
    >>> round(float(theta[0][0]), 3)
    2.9
    """
    tx = as_inner("decoupled.of", "tx", tx)

    @partial(jax.jit, static_argnums=3)
    def run(
        opt_params: OptState,
        theta: PyTree,
        updates: PyTree,
        fixed: Fixed,
        arrays: dict[str, object],
    ) -> Stepped:
        updates, new = tx.update(updates, opt_params, theta, **dict(fixed), **arrays)
        return new, apply_updates(theta, updates)

    def step(
        opt_params: OptState, theta: PyTree, updates: PyTree, **extra: object
    ) -> Stepped:
        same_shapes(
            "decoupled.of", theta=LookaheadParams.fast_of(theta), updates=updates
        )
        fixed, arrays = split(extra)
        return run(opt_params, theta, updates, fixed, arrays)

    return Decoupled(tx.init, step)
