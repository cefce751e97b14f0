"""What a transformation around another one needs: to compile, and to be inspected."""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import jax

from ..core import (
    AnyTransformation,
    GradientTransformationExtraArgs,
    OptState,
    Params,
    Updates,
)
from ._hold import Step
from ._own_code import only_own_code


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
    decide: Callable[..., Any] | None = None,
) -> GradientTransformationExtraArgs:
    """The pair of `init` and `update`, where `update` compiles as a whole if it can.

    A wrapper makes new functions in every step (the branches of a condition, an
    optimizer with the current hyperparameters), and JAX compiles what is new. Under one
    `jit` they are made once for each structure.

    Code of the user's is never compiled here: a schedule, a condition, a mask, a
    transformation or a function among the extra arguments runs as it is, and sees
    concrete values in every step. Where only `decide` has such code, the rest is
    compiled.

    Args:
        init: of the wrapper.
        update: of the wrapper. Its first argument is what `decide` returned, if there
            is such a function.
        around: what it is a wrapper of, for those who look inside.
        decide: calls the user's functions: `decide(updates, state, params, **extra)`.
            It returns a pytree of arrays.
    """

    def whole(
        updates: Updates, state: OptState, params: Params | None, **extra_args: Any
    ) -> Step:
        first = (
            () if decide is None else (decide(updates, state, params, **extra_args),)
        )
        return update(*first, updates, state, params, **extra_args)

    if_own = cache(lambda f: jax.jit(f) if only_own_code(f) else None)  # at first use

    def either(
        updates: Updates,
        state: OptState,
        params: Params | None = None,
        **extra_args: Any,
    ) -> Step:
        args = updates, state, params
        if not all(map(_may_be_traced, jax.tree.leaves((args, extra_args)))):
            return whole(*args, **extra_args)
        if compiled := if_own(whole):
            return compiled(*args, **extra_args)
        if decide is not None and (compiled := if_own(update)):
            return compiled(decide(*args, **extra_args), *args, **extra_args)
        return whole(*args, **extra_args)

    either.__qualname__ = update.__qualname__
    return seen_through(GradientTransformationExtraArgs(init, either), around)


def seen_through(
    tx: GradientTransformationExtraArgs, around: Around | None
) -> GradientTransformationExtraArgs:
    """`tx`, in which `describe` and `read` see what it is around."""
    tx.update.around = around  # pyright: ignore[reportFunctionMemberAccess]
    return tx


def _may_be_traced(x: Any) -> bool:
    return isinstance(x, bool | int | float | complex) or hasattr(x, "dtype")
