"""A compiled step that reuses the buffers of its params and state."""

from collections.abc import Callable
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
from jax.core import Tracer
from jaxtyping import PyTree

from ...core import OptState, Params

T = TypeVar("T")


class Donated:
    """A compiled function that donates its first two arguments, params and state.

    An array may appear in them twice (tied weights), or in other arguments too. JAX
    cannot donate a buffer that has another use in the same call, so a copy is donated
    instead. Otherwise this behaves like the compiled function.
    """

    def __init__(self, f: Callable[..., tuple[PyTree, ...]]):
        self._compiled = jax.jit(f, donate_argnums=(0, 1))
        self._returned = 0, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._compiled, name)

    def __call__(
        self, params: Params, state: OptState, *rest: PyTree, **more: PyTree
    ) -> tuple[PyTree, ...]:
        others = *rest, *more.values()
        # Results of the last call are used nowhere else. To check thousands of small
        # leaves would take a tenth of a step.
        known = (id(params), id(state)) == self._returned
        if not known or any(x is params or x is state for x in others):
            params, state = _apart((params, state), others)
        params, state, *results = self._compiled(params, state, *rest, **more)
        self._returned = id(params), id(state)
        return params, state, *results


def _apart(donated: T, others: PyTree) -> T:
    """`donated`, with a copy of each array that appears twice, or in `others`."""
    seen = set(map(id, jax.tree.leaves(others)))

    def leaf(x: object) -> object:
        if isinstance(x, jax.Array) and not isinstance(x, Tracer):
            if id(x) in seen:
                return jnp.copy(x)
            seen.add(id(x))
        return x

    return jax.tree.map(leaf, donated)
