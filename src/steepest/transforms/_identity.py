"""Doing nothing, doing away with everything, and doing your own to each leaf."""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array

from ..core import (
    EmptyState,
    function,
    GradientTransformationExtraArgs,
    Params,
    Rule,
    stateless,
    transformation,
    Updates,
)
from ..engine import lift, map_leaves, nothing


@transformation
def identity() -> GradientTransformationExtraArgs:
    """`u = g`. In a chain it costs nothing.

    >>> tx = identity()
    >>> tx.update("anything", tx.init(None))
    ('anything', EmptyState())
    """
    return nothing()


@transformation
def set_to_zero() -> GradientTransformationExtraArgs:
    """`u = 0`: what it is applied to does not move."""

    def leaf(n: Any, g: Array, p: Array | None) -> Array:
        return jnp.zeros_like(g)

    return lift(Rule("set_to_zero", EmptyState, leaf))


@transformation
def stateless_with_tree_map(
    f: Callable[[Array, Array | None], Array],
) -> GradientTransformationExtraArgs:
    """`u = f(g, p)` for each leaf; nothing is remembered.

    Unlike a rule, `f` sees the leaves in their own dtypes, and may change them.

    Args:
        f: a pure function of a leaf and its param; the param is `None` if `update` was
            called without params.
    """
    who = "stateless_with_tree_map"
    function(who, f=f)

    def update(updates: Updates, params: Params | None) -> Updates:
        if params is None:
            return map_leaves(who, lambda g: f(g, None), updates=updates)
        return map_leaves(who, lambda p, g: f(g, p), params=params, updates=updates)

    return stateless(update)
