"""A whole step in one compiled call."""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jaxtyping import Array, PyTree

from ...core import AnyTransformation, as_inner, OptState, Params, Updates
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
    update = as_inner("make_step", "tx", tx).update

    def step(
        params: Params, state: OptState, grads: Updates, **extra_args: PyTree
    ) -> tuple[Params, OptState]:
        updates, state = update(grads, state, params, **extra_args)
        return apply_updates(params, updates), state

    return _Named(Donated(step, "make_step"))


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
