"""From updates to params: adding them, averaging them, copying them over.

Polyak and Juditsky, Acceleration of stochastic approximation by averaging, 1992,
doi:10.1137/0330046
Mnih et al., Human-level control through deep reinforcement learning, 2015,
doi:10.1038/nature14236 (target networks, copied over now and then)
"""

import jax.numpy as jnp

from ..core import number, Params, period, Real, real, Updates
from ._dtypes import wide
from ._leaves import map_wide


def apply_updates(params: Params, updates: Updates) -> Params:
    """`p <- p + u`, in the dtype of `p`.

    Where `p` or `u` is `None`, `p` stays.

    Args:
        params: the params.
        updates: what `tx.update` returned for them, in any dtype.

    >>> params = {"w": jnp.array([1.0, 2.0]), "frozen": None}
    >>> updates = {"w": jnp.array([0.5, -0.5]), "frozen": None}
    >>> apply_updates(params, updates)["w"].tolist()
    [1.5, 1.5]
    """
    return map_wide("apply_updates", _add, [], updates=updates, params=params)


def incremental_update(
    new_tensors: Params, old_tensors: Params, step_size: Real
) -> Params:
    """`step_size * new + (1 - step_size) * old`, in the dtype of `old`.

    Called after every step it makes a Polyak average of the params. Where one of them
    is `None`, `old` stays.

    Args:
        new_tensors: the tree to move towards.
        old_tensors: the tree that moves; of the same structure.
        step_size: how far, of the way.
    """
    who = "incremental_update"
    numbers = real(who, step_size=step_size)
    return map_wide(who, _move, numbers, new=new_tensors, old=old_tensors)


def periodic_update(
    new_tensors: Params, old_tensors: Params, steps: Real, update_period: Real
) -> Params:
    """`new` when `steps % update_period == 0`, else `old`; in the dtype of `old`.

    Where one of them is `None`, `old` stays.

    Args:
        new_tensors: the tree to copy.
        old_tensors: the tree to keep between; of the same structure.
        steps: the count of steps; may be traced.
        update_period: how many steps from copy to copy; may be traced.
    """
    who = "periodic_update"
    (every,) = period(who, update_period=update_period)
    due = jnp.asarray(number(steps) % every == 0)
    return map_wide(who, _choose, [due], new=new_tensors, old=old_tensors)


_add = wide(lambda u, p: p + u)
_move = wide(lambda step_size, new, old: step_size * new + (1 - step_size) * old)
_choose = wide(lambda due, new, old: jnp.where(due, new, old))
