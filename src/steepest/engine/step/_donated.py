"""A compiled step that writes into the memory of what it was given."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.core import Tracer

from ...core import OptState, Params


class Donated:
    """A function compiled with its first two arguments donated: params and state.

    One array may stand twice among them (tied weights), and in a batch as well. JAX
    cannot donate a buffer that has another use in the same call, so there a copy is
    donated. In all else this is the compiled function.
    """

    def __init__(self, f: Callable[..., Any]):
        self._compiled = jax.jit(f, donate_argnums=(0, 1))
        self._returned = 0, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._compiled, name)

    def __call__(self, params: Params, state: OptState, *rest: Any, **more: Any) -> Any:
        others = *rest, *more.values()
        # What the last call returned stands nowhere else, and to look at thousands of
        # leaves takes a tenth of a step of small ones.
        known = (id(params), id(state)) == self._returned
        if not known or any(x is params or x is state for x in others):
            params, state = _apart((params, state), others)
        params, state, *found = self._compiled(params, state, *rest, **more)
        self._returned = id(params), id(state)
        return params, state, *found


def _apart(donated: Any, others: Any) -> Any:
    """`donated`, with a copy of each array that has been there or is in `others`."""
    seen = set(map(id, jax.tree.leaves(others)))

    def leaf(x: Any) -> Any:
        if isinstance(x, jax.Array) and not isinstance(x, Tracer):
            if id(x) in seen:
                return jnp.copy(x)
            seen.add(id(x))
        return x

    return jax.tree.map(leaf, donated)
