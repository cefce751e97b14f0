"""The value and the gradient that a line search has computed already."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from ..core import OptState, Params, Updates
from ..engine import branch
from ..tree import cast_like, get, get_all_with_path, NamedTupleKey
from ._along import ValueFn


def value_and_grad_from_state(
    value_fn: ValueFn,
) -> Callable[..., tuple[Any, Updates]]:
    """`jax.value_and_grad(value_fn)`, taken from the state where it is there.

    A line search ends with the value and the gradient at the next params. If they come
    from the same function at the next step, they need not be computed again: not so
    where the function changes, as it does with a new batch.

    The result is called as `value_fn` is, with the state of the optimizer by name:
    `f(params, *args, state=state, **kwargs)`. The state must have a `value` and a
    `grad` somewhere, as that of a zoom line search does, and that of a backtracking
    line search with `store_grad`. Where the value is not finite, as before the first
    step, both are computed.

    Args:
        value_fn: a function of the params, and of anything else, that returns a number.

    >>> import steepest
    >>> f = lambda p: jnp.sum(p**2)
    >>> tx, params = steepest.lbfgs(), jnp.array([3.0])
    >>> state, value_and_grad = tx.init(params), value_and_grad_from_state(f)
    >>> for _ in range(2):
    ...     value, grad = value_and_grad(params, state=state)
    ...     u, state = tx.update(
    ...         grad, state, params, value=value, grad=grad, value_fn=f
    ...     )
    ...     params = steepest.apply_updates(params, u)
    >>> abs(float(params[0])) < 1e-3
    True
    """

    def value_and_grad(
        params: Params, *fn_args: Any, state: OptState, **fn_kwargs: Any
    ) -> tuple[Any, Updates]:
        stored = _stored(state, "value"), _stored(state, "grad")
        if stored[0] is None or stored[1] is None:
            raise ValueError(
                "value_and_grad_from_state: Value or gradient not found in the state. "
                "Use an optimizer that keeps them, such as `lbfgs()` or "
                "`scale_by_backtracking_linesearch(..., store_grad=True)`."
            )
        stored = jax.tree.map(jnp.asarray, stored)

        def computed() -> tuple[Any, Updates]:
            found = jax.value_and_grad(value_fn)(params, *fn_args, **fn_kwargs)
            return cast_like(found, stored)

        return branch(jnp.isfinite(stored[0]), lambda: stored, computed)

    return value_and_grad


def _stored(state: OptState, name: str) -> Any:
    """What the state calls by that name; `None` if there is nothing.

    Params may have the name too, and a state may hold trees like the params: a field
    comes before the key of a dictionary.
    """
    found = get_all_with_path(state, name)
    fields = [x for path, x in found if isinstance(path[-1], NamedTupleKey)]
    return fields[0] if len(fields) == 1 else get(state, name)
