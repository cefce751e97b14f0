"""Criteria for wrappers: norms, finiteness, and the decisions of user functions."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float

from ..core import MeshAxes, Updates
from ..numerics import (
    any_over,
    by_split,
    computed_once,
    inlined,
    is_inexact,
    largest,
    read_again,
    squares,
    sum_over,
)


def squared_norm(updates: Updates, axes: MeshAxes | None = None) -> Float[Array, ""]:
    """The sum of the squares of all leaves, in float32 or wider.

    Args:
        updates: a tree of arrays.
        axes: inside `shard_map`, the mesh axes over which leaves may be sharded.
    """
    leaves, total = jax.tree.leaves(updates), jnp.zeros(())
    for where, places in by_split(axes, leaves).items():
        total = total + sum_over(where, _squared_norm([leaves[k] for k in places]))
    return total


def are_finite(updates: Updates, axes: MeshAxes | None = None) -> Bool[Array, ""]:
    """Whether all elements are finite, on all devices.

    Args:
        updates: a tree of arrays.
        axes: inside `shard_map`, the mesh axes over which leaves may be sharded.
    """
    leaves, bad = jax.tree.leaves(updates), jnp.array(False)
    for where, places in by_split(axes, leaves).items():
        bad = bad | any_over(where, ~_are_finite([leaves[k] for k in places]))
    return ~bad


@inlined
def _squared_norm(leaves: list[ArrayLike]) -> Float[Array, ""]:
    parts = map(read_again, _parts(leaves))
    return sum((jnp.sum(squares(x)).astype(float) for x in parts), jnp.zeros(()))


@inlined
def _are_finite(leaves: list[ArrayLike]) -> Bool[Array, ""]:
    sizes = [largest(x) for x in _parts(leaves)]
    most = functools.reduce(jnp.maximum, sizes, jnp.zeros(()))
    return computed_once(jnp.isfinite(most))


def yes_or_no(name: str, argument: str, decision: ArrayLike | None) -> Bool[Array, ""]:
    """The boolean that a user's function returned, as an array.

    Args:
        name: name used in error messages.
        argument: name of the argument that holds the function.
        decision: the value it returned: a Python boolean or an array.
    """
    if decision is None or np.ndim(decision) > 0:
        none = decision is None
        got = "None" if none else f"an array of shape {np.shape(decision)}"
        raise ValueError(
            f"{name}: {argument} must return one boolean for the whole step, got {got}."
            " Reduce it with `jnp.all` or `jnp.any`."
        )
    return jnp.asarray(decision, bool)


def _parts(leaves: list[ArrayLike]) -> list[Array]:
    """The leaves as real arrays, without derivatives: a decision has none."""
    parts: list[Array] = []
    for x in map(jnp.asarray, leaves):
        if is_inexact(x):
            x = jax.lax.stop_gradient(x)
            parts += [x.real, x.imag] if jnp.iscomplexobj(x) else [x]
    return parts
