"""Identity, zero updates, and a function of your own for each leaf."""

from collections.abc import Callable

import jax.numpy as jnp
from jaxtyping import Array

from .. import check
from ..core import (
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


def zero_formula(g: Array) -> Array:
    """`u = 0`."""
    return jnp.zeros_like(g)


@transformation
def set_to_zero() -> GradientTransformationExtraArgs:
    """`u = 0`: the params do not move."""
    return lift(Rule("set_to_zero", zero_formula))


@transformation
def stateless_with_tree_map(
    f: Callable[[Array, Array | None], Array],
) -> GradientTransformationExtraArgs:
    """`u = f(g, p)` for each leaf, without a state.

    Unlike a rule, `f` gets the leaves in their own dtypes, and may change the dtype.

    Args:
        f: a pure function of a leaf and its param. The param is `None` if `update` is
            called without params.
    """
    name = "stateless_with_tree_map"
    check.function(name, f=f)

    def update(updates: Updates, params: Params | None) -> Updates:
        if params is None:
            return map_leaves(name, lambda g: f(g, None), updates=updates)
        return map_leaves(name, lambda p, g: f(g, p), params=params, updates=updates)

    return stateless(update)
