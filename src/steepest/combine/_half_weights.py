"""Steps of half-precision weights: for `compensated` and `stochastic_rounding`."""

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import PyTree

from ..core import OptState, Param, Params, Updates
from ..engine import FUNCTIONS_OF_PARAMS, Landed, Leaves, Plan, plus
from ..numerics import Corrected, inlined, is_half


def is_narrow(x: Param) -> bool:
    """Whether a param is in half precision."""
    return hasattr(x, "dtype") and is_half(x.dtype)


def widened(tree: PyTree) -> PyTree:
    """The tree with its half-precision leaves in float32; they may be shapes."""

    def leaf(x: Any) -> Any:
        if not is_narrow(x):
            return x
        if isinstance(x, jax.ShapeDtypeStruct):
            return jax.ShapeDtypeStruct(x.shape, jnp.float32, sharding=x.sharding)
        return x.astype(jnp.float32)

    return jax.tree.map(leaf, tree)


def advanced(
    plan: Plan,
    leaves: Leaves,
    weights: Sequence[Any],
    updates: Updates,
    inner_state: OptState,
    extra_args: dict[str, object],
) -> tuple[list[Any], OptState]:
    """A step without the detour over an update: half-precision weights have landed.

    Args:
        plan: the inner transformation, made of rules only.
        leaves: the params.
        weights: their leaves; those in half precision are `Corrected`.
        updates: the gradients.
        inner_state: the state of the plan.
        extra_args: the extra arguments of `update`.

    Returns:
        The new leaf where one of `weights` is `Corrected`, and updates elsewhere; and
        the new state.
    """
    us, inner_state = plan.advance(
        updates, inner_state, leaves.like(weights), of_wide(extra_args, leaves)
    )
    news = leaves.treedef.flatten_up_to(us)
    for k, w in enumerate(weights):
        if isinstance(w, Corrected):
            u = news[k]
            news[k] = u.param if isinstance(u, Landed) else _plus(w, u)
    return news, inner_state


def of_wide(extra_args: dict[str, object], leaves: Leaves) -> dict[str, object]:
    """The extra arguments for float32 params: the loss is computed at narrow ones."""

    def at_narrow(
        f: Callable[..., PyTree], returns_tree: bool
    ) -> Callable[..., PyTree]:
        @wraps(f)
        def wide(params: Params, *args: object, **kwargs: object) -> PyTree:
            cast = lambda x, p: x.astype(p.dtype) if is_narrow(p) else x
            params = jax.tree.map(cast, params, leaves.tree)
            result = f(params, *args, **kwargs)
            return widened(result) if returns_tree else result

        return wide

    changed = dict(extra_args)
    for name, returns_tree in FUNCTIONS_OF_PARAMS.items():
        f = extra_args.get(name)
        if callable(f):
            changed[name] = at_narrow(f, returns_tree)
    if "grad" in extra_args:
        changed["grad"] = widened(extra_args["grad"])
    return changed


_plus = inlined(plus)
