"""The value and the gradient that a line search has computed already."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from .. import check
from ..core import OptState, Params, Updates
from ..engine import branch, MaskedNode, same_shapes
from ..tree import cast_like, get, get_all_with_path, NamedTupleKey
from ._along import differentiable, returned, ValueFn


def value_and_grad_from_state(
    value_fn: ValueFn, *, must_be_there: bool = True
) -> Callable[..., tuple[Any, Updates]]:
    """`jax.value_and_grad(value_fn)`, taken from the state where it is there.

    A line search ends with the value and the gradient at the next params. If they come
    from the same function at the next step, they need not be computed again: not so
    where the function changes, as it does with a new batch.

    The result is called as `value_fn` is, with the state of the optimizer by name:
    `f(params, *args, state=state, **kwargs)`. The state must have a `value` and a
    `grad` somewhere, as that of a zoom line search does, and that of a backtracking
    line search with `store_grad`. Where the value is not finite, as before the first
    step, both are computed; so they are where a line search has only some of the leaves
    (under a mask, in a group): when it ended, the others had not moved yet.

    Args:
        value_fn: a function of the params, and of anything else, that returns a number.
        must_be_there: whether a state without them is an error; otherwise they are
            computed.

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
    name = "value_and_grad_from_state"
    check.function(name, value_fn=value_fn)

    def value_and_grad(
        params: Params, *fn_args: Any, state: OptState, **fn_kwargs: Any
    ) -> tuple[Any, Updates]:
        def value_of(params: Params) -> Any:
            return returned(name, value_fn(params, *fn_args, **fn_kwargs))

        differentiable(name, params)
        if _has_holes(state):
            return jax.value_and_grad(value_of)(params)
        stored = _stored(state, "value"), _stored(state, "grad")
        if stored[0] is None or stored[1] is None:
            if not must_be_there:
                return jax.value_and_grad(value_of)(params)
            raise ValueError(
                f"{name}: Value or gradient not found in the state. "
                "Use an optimizer that keeps them, such as `lbfgs()` or "
                "`scale_by_backtracking_linesearch(..., store_grad=True)`."
            )
        same_shapes(name, params=params, **{"state's `grad`": stored[1]})
        stored = jax.tree.map(jnp.asarray, stored)

        def computed() -> tuple[Any, Updates]:
            return cast_like(jax.value_and_grad(value_of)(params), stored)

        return branch(jnp.isfinite(stored[0]), lambda: stored, computed)

    return value_and_grad


def _stored(state: OptState, name: str) -> Any:
    """What the state calls by that name; `None` if there is nothing.

    Params may have the name too, and a state may hold trees like the params: a field
    comes before the key of a dictionary.
    """
    fields = _fields(state, name)
    return fields[0] if len(fields) == 1 else get(state, name)


def _has_holes(state: OptState) -> bool:
    """Whether a gradient in the state is that of some leaves alone."""
    is_hole = lambda x: isinstance(x, MaskedNode)
    return any(map(is_hole, jax.tree.leaves(_fields(state, "grad"), is_leaf=is_hole)))


def _fields(state: OptState, name: str) -> list[Any]:
    found = get_all_with_path(state, name)
    return [x for path, x in found if isinstance(path[-1], NamedTupleKey)]
