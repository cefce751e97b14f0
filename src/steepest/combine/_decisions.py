"""What wrappers decide by: norms, whether all is finite, what a function answers."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from ..core import MeshAxes, Updates
from ..engine import set_aside
from ..numerics import any_over, by_split, is_inexact, squares, sum_over


def squared_norm(updates: Updates, axes: MeshAxes | None = None) -> Float[Array, ""]:
    """The sum of the squares of all leaves, in float32 or wider.

    Args:
        updates: a tree of arrays.
        axes: the mesh axes over which leaves may be split, inside `shard_map`.
    """
    leaves, total = jax.tree.leaves(updates), jnp.zeros(())
    for where, places in by_split(axes, leaves).items():
        total = total + sum_over(where, _squared_norm([leaves[k] for k in places]))
    return total


def are_finite(updates: Updates, axes: MeshAxes | None = None) -> Bool[Array, ""]:
    """Whether no number is infinite or NaN, on any device.

    Args:
        updates: a tree of arrays.
        axes: the mesh axes over which leaves may be split, inside `shard_map`.
    """
    leaves, bad = jax.tree.leaves(updates), jnp.array(False)
    for where, places in by_split(axes, leaves).items():
        bad = bad | any_over(where, ~_are_finite([leaves[k] for k in places]))
    return ~bad


@functools.partial(jax.jit, inline=True)
def _squared_norm(leaves: list[Any]) -> Float[Array, ""]:
    # Behind the barrier, or XLA would store the squares, which Adam needs as well.
    parts = map(jax.lax.optimization_barrier, _parts(leaves))
    return sum((jnp.sum(squares(x)).astype(float) for x in parts), jnp.zeros(()))


@functools.partial(jax.jit, inline=True)
def _are_finite(leaves: list[Any]) -> Bool[Array, ""]:
    # If all numbers are finite, so is the largest, and a maximum needs no memory: XLA's
    # CPU compiler materialises the `isfinite` mask.
    largest = [jnp.max(jnp.abs(x), initial=0).astype(float) for x in _parts(leaves)]
    return set_aside(
        jnp.isfinite(functools.reduce(jnp.maximum, largest, jnp.zeros(())))
    )


def yes_or_no(name: str, argument: str, decision: Any) -> Any:
    """The boolean that a user's function returned: Python's, or an array.

    Args:
        name: name used in error messages.
        argument: the argument that the function was.
        decision: what it returned.
    """
    if decision is None or np.ndim(decision) > 0:
        none = decision is None
        got = "None" if none else f"an array of shape {np.shape(decision)}"
        raise ValueError(
            f"{name}: {argument} must return one boolean for the whole step, got {got}."
            " Reduce it with `jnp.all` or `jnp.any`."
        )
    return jnp.asarray(decision, bool)


def _parts(leaves: list[Any]) -> list[Array]:
    """The leaves as real arrays. A decision has no derivative."""
    parts: list[Array] = []
    for x in map(jnp.asarray, leaves):
        if is_inexact(x):
            x = jax.lax.stop_gradient(x)
            parts += [x.real, x.imag] if jnp.iscomplexobj(x) else [x]
    return parts
