"""A compiled step that reuses the buffers of its params and state."""

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
from jax.core import Tracer
from jaxtyping import PyTree

from ...core import OptState, Params, Recent
from ._kept import committed, kept_shardings, KeptShardings

T = TypeVar("T")
_PROGRAMS = 16  # one for each set of shardings that a step is called with


class Donated:
    """A compiled function that donates its first two arguments, params and state.

    An array may appear in them twice (tied weights), or in other arguments too. JAX
    cannot donate a buffer that has another use in the same call, so a copy is donated
    instead. Otherwise this behaves like the compiled function.

    On several devices, or in host memory, the new params and state are where the old
    ones are. Otherwise the compiler would choose: if the state is sharded and the
    params are not, it returns sharded params.

    Args:
        f: a function of the params, the state and more. It returns the new ones first.
        name: name used in error messages.
    """

    def __init__(self, f: Callable[..., tuple[PyTree, ...]], name: str):
        self._f, self._name = f, name
        self._compiled = jax.jit(f, donate_argnums=(0, 1))
        self._placed: Recent[Any] = Recent(_PROGRAMS)
        self._returned: tuple[int, int, Any] = 0, 0, None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._compiled, name)

    def __call__(
        self, params: Params, state: OptState, *rest: PyTree, **more: PyTree
    ) -> tuple[PyTree, ...]:
        others = *rest, *more.values()
        # Results of the last call are used nowhere else. To check thousands of small
        # leaves would take a tenth of a step.
        *ids, program = self._returned
        known = ids == [id(params), id(state)]
        if not known:
            (params, state), kept = kept_shardings(self._name, params, state)
            program = None if kept is None else self._program(kept)
        if not known or any(x is params or x is state for x in others):
            params, state = _apart((params, state), others)
        if not known:
            params, state = committed((params, state), others)
        if program is None:
            params, state, *results = self._compiled(params, state, *rest, **more)
        else:
            (params, state), results = program(params, state, *rest, **more)
        self._returned = id(params), id(state), program
        return params, state, *results

    def lower(
        self, params: Params, state: OptState, *rest: PyTree, **more: PyTree
    ) -> Any:
        """The lowered program, as `jax.jit(f).lower`; with shapes instead of arrays."""
        (params, state), kept = kept_shardings(self._name, params, state)
        if kept is None:
            return self._compiled.lower(params, state, *rest, **more)
        return self._program(kept).lower(params, state, *rest, **more)

    def _program(self, kept: KeptShardings) -> Any:
        """The function, compiled to return params and state with these shardings."""

        def placed(
            params: Params, state: OptState, *rest: PyTree, **more: PyTree
        ) -> tuple[PyTree, PyTree]:
            new_params, new_state, *results = self._f(params, state, *rest, **more)
            new = new_params, new_state
            kept.check(self._name, (params, state), new)
            return new, results

        where = kept.tree, None
        compiled = partial(jax.jit, placed, donate_argnums=(0, 1), out_shardings=where)
        return self._placed(kept, compiled)


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
