"""What wrappers decide by: norms, whether all is finite, what a function answers."""

import functools
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from ..core import Updates
from ..engine import set_aside
from ..numerics import is_inexact, squares


@functools.partial(jax.jit, inline=True)
def squared_norm(updates: Updates) -> Float[Array, ""]:
    """The sum of the squares of all leaves, in float32 or wider."""
    # Behind the barrier, or XLA would store the squares, which Adam needs as well.
    leaves = map(jax.lax.optimization_barrier, _parts(updates))
    return sum((jnp.sum(squares(x)).astype(float) for x in leaves), jnp.zeros(()))


@functools.partial(jax.jit, inline=True)
def are_finite(updates: Updates) -> Bool[Array, ""]:
    """Whether no number is infinite or NaN: if so, the largest is neither.

    A maximum needs no memory. XLA's CPU compiler materialises the `isfinite` mask.
    """
    largest = [jnp.max(jnp.abs(x), initial=0).astype(float) for x in _parts(updates)]
    return set_aside(
        jnp.isfinite(functools.reduce(jnp.maximum, largest, jnp.zeros(())))
    )


def anywhere(
    decision: Bool[Array, ""], axis_name: str | Sequence[str] | None
) -> Bool[Array, ""]:
    """Whether the decision is true on any device of a mesh axis.

    Args:
        decision: a boolean that may differ from device to device.
        axis_name: the axes to look along; `None` for this device alone.
    """
    if axis_name is None:
        return decision
    return jax.lax.psum(decision.astype(jnp.int32), axis_name) > 0


def mesh_axes(name: str, axis_name: Any) -> None:
    """Refuse what cannot name an axis of a mesh.

    Args:
        name: name used in error messages.
        axis_name: a name, several, or `None`.
    """
    if not isinstance(axis_name, str | Sequence | None):
        raise TypeError(
            f"{name}: axis_name must be the name of a mesh axis, a sequence of names, "
            f"or None, got a {type(axis_name).__name__}."
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


def _parts(updates: Updates) -> list[Array]:
    """The leaves as real arrays. A decision has no derivative."""
    parts: list[Array] = []
    for x in map(jnp.asarray, jax.tree.leaves(updates)):
        if is_inexact(x):
            x = jax.lax.stop_gradient(x)
            parts += [x.real, x.imag] if jnp.iscomplexobj(x) else [x]
    return parts
