"""A whole step in one compiled call."""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jaxtyping import Array, PyTree

from ...core import (
    AnyTransformation,
    as_inner,
    GradientTransformationExtraArgs,
    OptState,
    Params,
    Updates,
)
from ..run import Landed
from ._apply import apply_updates
from ._donated import Donated


def make_step(
    tx: AnyTransformation,
) -> Callable[..., tuple[Params, OptState]]:
    """`step(params, state, grads, **extra_args) -> (params, state)`: update and apply.

    The step is compiled once per structure. It donates the params and the state: the
    new ones are written into their buffers, so do not use the old ones again. Results
    are in the order of the arguments; otherwise XLA would copy every buffer (JAX
    0.10.2). An array that appears twice, or also in the gradients, is copied first.

    Args:
        tx: any transformation.

    >>> import jax.numpy as jnp, steepest
    >>> tx = steepest.sgd(0.1)
    >>> step, params = steepest.make_step(tx), jnp.array([1.0, 2.0])
    >>> params, state = step(params, tx.init(params), jnp.array([1.0, 1.0]))
    >>> [round(x, 3) for x in params.tolist()]
    [0.9, 1.9]
    """
    return _Named(Donated(stepping(as_inner("make_step", "tx", tx)), "make_step"))


def stepping(
    tx: GradientTransformationExtraArgs,
) -> Callable[..., tuple[Params, OptState]]:
    """`step(params, state, grads, **extra_args) -> (params, state)`, not compiled.

    It computes `tx.update` and `apply_updates`. On a GPU, leaves with memory in few
    bits are updated by one kernel each.

    Args:
        tx: any transformation.
    """
    # That of a `Plan`, or of a `WrapperInfo`.
    advance = getattr(getattr(tx, "info", None), "advance", None)

    def step(
        params: Params, state: OptState, grads: Updates, **extra_args: object
    ) -> tuple[Params, OptState]:
        if advance is None:
            updates, state = tx.update(grads, state, params, **extra_args)
            return apply_updates(params, updates), state
        updates, state = advance(grads, state, params, extra_args)
        return _applied(params, updates), state

    return step


def _applied(params: Params, updates: PyTree) -> Params:
    """The new params, from updates some of which may be `Landed`."""
    is_leaf = lambda x: x is None or isinstance(x, Landed)
    us, treedef = jax.tree.flatten(updates, is_leaf=is_leaf)
    if not any(isinstance(u, Landed) for u in us):
        return apply_updates(params, updates)
    rest = [None if isinstance(u, Landed) else u for u in us]
    new = treedef.flatten_up_to(apply_updates(params, treedef.unflatten(rest)))
    pairs = zip(us, new, strict=True)
    return treedef.unflatten(u.param if isinstance(u, Landed) else p for u, p in pairs)


class _Named:
    """A compiled step whose errors name the arguments that are not arrays."""

    def __init__(self, step: Donated):
        self._step = step

    def __getattr__(self, name: str) -> Any:
        return getattr(self._step, name)

    def __call__(
        self, params: Params, state: OptState, grads: Updates, **extra_args: PyTree
    ) -> tuple[Params, OptState]:
        try:
            return self._step(params, state, grads, **extra_args)
        except TypeError:
            trees = {"params": params, "state": state, "grads": grads, **extra_args}
            for path, x in jax.tree_util.tree_leaves_with_path(trees):
                if not isinstance(x, bool | int | float | complex | np.ndarray | Array):
                    name, where = path[0].key, jax.tree_util.keystr(path[1:])
                    raise TypeError(
                        f"make_step: {name}{where} is a {type(x).__name__}, expected "
                        "an array, since the step is compiled. To pass functions as "
                        "extra arguments, call `tx.update` and `apply_updates`."
                    ) from None
            raise
