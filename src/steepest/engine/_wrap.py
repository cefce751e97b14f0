"""What a transformation around another one needs: to compile, and to hold back."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from ..core import (
    AnyTransformation,
    GradientTransformationExtraArgs,
    OptState,
    Params,
    Updates,
    with_extra_args_support,
)

Step = tuple[Updates, OptState]  # what an `update` returns


class Around(NamedTuple):
    """What a wrapper says of itself, for `describe` and `read`."""

    name: str
    tx: AnyTransformation  # what it is around
    at: str  # the field of its state where that one's is; "" for the state itself

    def inner(self, state: OptState) -> OptState:
        """Of the wrapper's state, that of what it is around."""
        return getattr(state, self.at) if self.at else state


def wrapping(
    init: Callable[[Params], OptState],
    update: Callable[..., Step],
    around: Around | None = None,
) -> GradientTransformationExtraArgs:
    """The pair of `init` and `update`, where `update` compiles as a whole.

    A wrapper makes new functions in every step (the branches of a condition, an
    optimizer of today's hyperparameters), and JAX compiles what is new. Under one `jit`
    they are made once for each structure. Where an extra argument is a function, such
    as the loss for a line search, the step runs as it is.

    Args:
        init: of the wrapper.
        update: of the wrapper.
        around: what it is a wrapper of, for those who look inside.
    """
    compiled = jax.jit(update)

    def either(
        updates: Updates,
        state: OptState,
        params: Params | None = None,
        **extra_args: Any,
    ) -> Step:
        given = jax.tree.leaves((updates, state, params, extra_args))
        run = compiled if all(map(_may_be_traced, given)) else update
        return run(updates, state, params, **extra_args)

    either.__qualname__ = update.__qualname__
    return seen_through(GradientTransformationExtraArgs(init, either), around)


def seen_through(
    tx: GradientTransformationExtraArgs, around: Around | None
) -> GradientTransformationExtraArgs:
    """`tx`, in which `describe` and `read` see what it is around."""
    tx.update.around = around  # pyright: ignore[reportFunctionMemberAccess]
    return tx


def when(
    apply: Any,
    tx: AnyTransformation,
    instead: Callable[[Updates], Updates],
    updates: Updates,
    state: OptState,
    params: Params | None,
    extra_args: Mapping[str, Any],
) -> Step:
    """A step of `tx` if `apply`; otherwise `instead`, and the state as it was.

    Args:
        apply: a boolean, maybe traced.
        tx: any transformation.
        instead: a function of the updates.
        updates, state, params, extra_args: as for `tx.update`.
    """
    inner = with_extra_args_support(tx)

    def step() -> Step:
        return inner.update(updates, state, params, **extra_args)

    def hold() -> Step:
        wanted, _ = jax.eval_shape(step)
        cast = lambda x, like: jnp.asarray(x).astype(like.dtype)
        return jax.tree.map(cast, instead(updates), wanted), state

    return jax.lax.cond(apply, step, hold)


def zeros(updates: Updates) -> Updates:
    """Zeros like the updates: to hold still."""
    return jax.tree.map(jnp.zeros_like, updates)


def _may_be_traced(x: Any) -> bool:
    return isinstance(x, bool | int | float | complex) or hasattr(x, "dtype")
