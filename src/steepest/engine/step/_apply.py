"""Change params: add updates, average, copy.

Polyak and Juditsky, Acceleration of stochastic approximation by averaging, 1992,
doi:10.1137/0330046
Mnih et al., Human-level control through deep reinforcement learning, 2015,
doi:10.1038/nature14236 (target networks, copied periodically)
"""

import warnings

import jax
import jax.numpy as jnp
from jax.core import Tracer
from jaxtyping import Array, ArrayLike

from ... import check
from ...core import Params, Real, Updates
from ...numerics import is_inexact, rounded, wide_dtype
from ..leaves import Leaves, map_leaves, map_wide, wide, widen


def apply_updates(
    params: Params, updates: Updates, *, key: Array | None = None
) -> Params:
    """`p <- p + u`, in the dtype of `p`.

    If `p` or `u` is `None`, the result is `p`.

    Adding 0.001 to a bfloat16 1.0 leaves it at 1.0, however often it is added. With a
    `key`, params in half precision are rounded up or down at random, so that a thousand
    such steps add 1 on average.

    Args:
        params: the params.
        updates: the updates that `tx.update` returned for them, in any dtype.
        key: a random key, a new one in each step; `None` to round to nearest.

    >>> import jax.numpy as jnp
    >>> params = {"w": jnp.array([1.0, 2.0]), "frozen": None}
    >>> updates = {"w": jnp.array([0.5, -0.5]), "frozen": None}
    >>> apply_updates(params, updates)["w"].tolist()
    [1.5, 1.5]
    """
    name = "apply_updates"
    trees = {"updates": updates, "params": params}
    if updates is None and not jax.tree_util.all_leaves([params]):
        raise ValueError(
            f"{name}: the updates are None, expected a tree like the params. Pass the "
            "first of the two values that `tx.update` returns."
        )
    if any(map(_is_complex, jax.tree.leaves(updates))):
        _check_real(name, **trees)
    if any(map(_is_integer, jax.tree.leaves(params))):
        _warn_of_integers(name, **trees)
    if key is None:
        return map_wide(name, _add, [], **trees)
    check.key(name, key=key)
    keys = iter(jax.random.split(key, max(len(Leaves(params).arrays), 1)))
    add = lambda u, p: _add_at_random(u, p, next(keys))
    return map_leaves(name, add, **trees)


def incremental_update(
    new_tensors: Params, old_tensors: Params, step_size: Real
) -> Params:
    """`step_size * new + (1 - step_size) * old`, in the dtype of `old`.

    Called after every step, it computes a Polyak average of the params. If one of the
    two is `None`, the result is `old`.

    Args:
        new_tensors: the current values.
        old_tensors: the average so far; a tree of the same structure.
        step_size: the weight of the current values.
    """
    name = "incremental_update"
    numbers = check.finite(name, step_size=step_size)
    return map_wide(name, _move, numbers, new=new_tensors, old=old_tensors)


def periodic_update(
    new_tensors: Params, old_tensors: Params, steps: Real, update_period: Real
) -> Params:
    """`new` when `steps % update_period == 0`, else `old`; in the dtype of `old`.

    If one of the two is `None`, the result is `old`.

    Args:
        new_tensors: the tree to copy.
        old_tensors: the last copy; a tree of the same structure.
        steps: the number of steps so far, at least 0; may be traced.
        update_period: the number of steps from copy to copy; may be traced.
    """
    name = "periodic_update"
    (every,) = check.period(name, update_period=update_period)
    (count,) = check.amount(name, steps=steps)
    due = jnp.asarray(count % every == 0)
    return map_wide(name, _choose, [due], new=new_tensors, old=old_tensors)


def _is_complex(x: object) -> bool:
    dtype = getattr(x, "dtype", None)
    return dtype is not None and jnp.issubdtype(dtype, jnp.complexfloating)


def _check_real(name: str, updates: Updates, params: Params) -> None:
    """Raise an error for a complex update of a real param."""
    leaves = Leaves(updates)
    ps = leaves.match(name, params, "params", "Pass trees of one structure.")
    for k, (u, p) in enumerate(zip(leaves.arrays, ps, strict=True)):
        if _is_complex(u) and p is not None and not _is_complex(p):
            raise TypeError(
                f"{name}: leaf {leaves.path(k)} is {u.dtype} in the updates and not "
                "complex in the params, so the imaginary part would be lost. Take the "
                "real part of the updates, or make the params complex."
            )


def _is_integer(x: ArrayLike) -> bool:
    return jnp.issubdtype(jnp.result_type(x), jnp.integer)


def _warn_of_integers(name: str, updates: Updates, params: Params) -> None:
    """Warn if a floating update is added to an integer param: the sum is truncated.

    An update of -0.1 turns 2 into 1, as in Optax. Zeros do no harm, but a traced update
    may be anything.
    """
    leaves = Leaves(updates)
    ps = leaves.match(name, params, "params", "Pass trees of one structure.")
    for k, (u, p) in enumerate(zip(leaves.arrays, ps, strict=True)):
        if u is None or p is None or not is_inexact(u) or not _is_integer(p):
            continue
        if isinstance(u, Tracer) or bool(jnp.any(u != 0)):
            warnings.warn(
                f"{name}: leaf {leaves.path(k)} is {u.dtype} in the updates and "
                f"{jnp.result_type(p)} in the params, so the sum is truncated to a "
                "whole number. Use floating params, or `None` as the update.",
                stacklevel=3,
            )


@jax.jit
def _add_at_random(u: Array, p: Array, key: Array) -> Array:
    real = wide_dtype([u, p])
    if jnp.iscomplexobj(p) or jnp.result_type(p) == real:
        return _add([], [(u, p)])[0]
    return rounded(widen(p, real) + widen(u, real), p.dtype, key)


_add = wide(lambda u, p: p + u)
_move = wide(lambda step_size, new, old: step_size * new + (1 - step_size) * old)
_choose = wide(lambda due, new, old: jnp.where(due, new, old))
