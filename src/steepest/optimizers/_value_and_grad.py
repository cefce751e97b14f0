"""Reuse the value and gradient that a line search has already computed."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .. import check
from ..core import OptState, Params, Updates
from ..engine import branch, MaskedNode, same_shapes
from ..tree import cast_like, get, get_all_with_path, NamedTupleKey
from ._line import differentiable, returned, ValueFn


def value_and_grad_from_state(
    value_fn: ValueFn, *, must_be_there: bool = True
) -> Callable[..., tuple[Float[Array, ""], Updates]]:
    """Like `jax.value_and_grad(value_fn)`, but reads the result from the state.

    A line search ends with the value and gradient at the next params. The next step can
    reuse them if the function stays the same. Do not use this if the function changes
    between steps, for example with a new batch.

    Call the result like `value_fn`, with the optimizer state as a keyword argument:
    `f(params, *args, state=state, **kwargs)`. The state must contain a `value` and a
    `grad`, as the states of a zoom line search, and of a backtracking line search with
    `store_grad`, do. Both are computed if the value is not finite, as before the first
    step. They are also computed if the line search covers only some of the leaves (in a
    mask or partition), because the other leaves moved after it ended.

    Args:
        value_fn: a function of the params and other arguments that returns a number.
        must_be_there: whether a state without them is an error; otherwise they are
            computed.

    >>> import jax.numpy as jnp, steepest
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
        params: Params, *fn_args: object, state: OptState, **fn_kwargs: object
    ) -> tuple[Float[Array, ""], Updates]:
        def value_of(params: Params) -> Float[Array, ""]:
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
                "Use an optimizer that stores them, such as `lbfgs()` or "
                "`scale_by_backtracking_linesearch(..., store_grad=True)`."
            )
        same_shapes(name, params=params, **{"state's `grad`": stored[1]})
        stored = jax.tree.map(jnp.asarray, stored)

        def computed() -> tuple[Float[Array, ""], Updates]:
            return cast_like(jax.value_and_grad(value_of)(params), stored)

        return branch(jnp.isfinite(stored[0]), lambda: stored, computed)

    return value_and_grad


def _stored(state: OptState, name: str) -> Any:
    """The entry of the state with this name, or `None`.

    A state may hold trees like the params, whose keys may have this name too. Fields of
    the state take precedence over such keys.
    """
    fields = _fields(state, name)
    return fields[0] if len(fields) == 1 else get(state, name)


def _has_holes(state: OptState) -> bool:
    """Whether a gradient in the state covers only some of the leaves."""
    is_hole = lambda x: isinstance(x, MaskedNode)
    return any(map(is_hole, jax.tree.leaves(_fields(state, "grad"), is_leaf=is_hole)))


def _fields(state: OptState, name: str) -> list[Any]:
    entries = get_all_with_path(state, name)
    return [x for path, x in entries if isinstance(path[-1], NamedTupleKey)]
