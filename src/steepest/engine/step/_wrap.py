"""What all wrappers of transformations share: compilation and inspection."""

from collections.abc import Callable, Collection, Sequence
from functools import lru_cache, partial
from typing import NamedTuple

import jax
from jax.core import Tracer
from jaxtyping import Array, PyTree

from ...core import (
    Call,
    OptState,
    Params,
    Static,
    Transformation,
    Updates,
)
from ._info import WrapperInfo
from ._own_code import only_own_code
from ._select import Step


class Decide(NamedTuple):
    """The part of a wrapper's step that runs the user's functions."""

    function: Callable[..., PyTree]  # (updates, state, params, **extra) -> arrays
    asks: tuple[str, ...]  # the wrapper's arguments that only this function calls


def wrapping(
    init: Callable[[Params], OptState],
    update: Callable[..., Step],
    info: WrapperInfo | None = None,
    decide: Decide | None = None,
    ready: Callable[..., OptState] | None = None,
) -> Transformation:
    """A wrapper as a transformation, whose `update` is compiled as a whole if possible.

    A wrapper makes new functions in every step (the branches of a condition, an
    optimizer with the current hyperparameters), and JAX compiles every new function.
    Inside one `jit` they are made once for each structure. The optimizer is an argument
    of that `jit`, so one program serves every learning rate.

    The user's code is never compiled here. A schedule, a condition, a mask, a
    transformation or a function among the extra arguments runs in Python, with concrete
    values in every step. If only `decide` has such code, the rest is compiled.

    Args:
        init: the wrapper's `init`.
        update: the wrapper's `update`. With a `decide`, its first argument is the
            result of `decide`.
        info: information about the wrapper.
        decide: the part that runs the user's functions.
        ready: `(updates, state, params) -> state`, called first and never compiled.
    """

    def whole(
        updates: Updates,
        state: OptState,
        params: Params | None = None,
        **extra_args: object,
    ) -> Step:
        if ready is not None:
            state = ready(updates, state, params)
        args = updates, state, params
        first = () if decide is None else (decide.function(*args, **extra_args),)
        return update(*first, *args, **extra_args)

    step = partial(_step, _Wrapper(whole, update, decide, ready))
    return Transformation(init, whole, info, step)


class _Wrapper(NamedTuple):
    """The functions of a wrapper."""

    whole: Callable[..., Step]
    rest: Callable[..., Step]  # after `decide`
    decide: Decide | None
    ready: Callable[..., OptState] | None


def _step(
    wrapper: _Wrapper,
    call: Call,
    updates: Updates,
    state: OptState,
    params: Params | None,
    extra_args: dict[str, object],
) -> Step:
    if wrapper.ready is not None:
        state = wrapper.ready(updates, state, params)
    args = updates, state, params
    leaves = jax.tree.leaves((args, extra_args))
    if any(isinstance(x, Tracer) or not _may_be_traced(x) for x in leaves):
        return wrapper.whole(*args, **extra_args)
    decide = wrapper.decide
    if _compiles(call, ()):
        arrays, static = call.with_operands.flatten()
        return _compiled(static, "whole")(arrays, (), *args, **extra_args)
    if decide is not None and _compiles(call, decide.asks):
        first = (decide.function(*args, **extra_args),)
        arrays, static = call.with_operands.flatten()
        return _compiled(static, "rest")(arrays, first, *args, **extra_args)
    return wrapper.whole(*args, **extra_args)


def _compiles(call: Call, apart_from: Collection[str]) -> bool:
    """`only_own_code`, computed once for each call."""
    known = call.__dict__.setdefault("compiles", {})
    if apart_from not in known:
        known[apart_from] = only_own_code(call, apart_from)
    return known[apart_from]


# A compiled step for two small leaves takes about 3.5 MB.
@lru_cache(maxsize=128)
def _compiled(static: Static, part: str) -> Callable[..., Step]:
    """The compiled step of a wrapper, whole or after `decide`.

    Its first argument is the arrays among the arguments of the wrapper.
    """

    def run(
        arrays: Sequence[Array],
        first: tuple[PyTree, ...],
        *args: PyTree,
        **extra_args: PyTree,
    ) -> Step:
        wrapper = Call.unflatten(static, arrays).made.step.args[0]
        return getattr(wrapper, part)(*first, *args, **extra_args)

    return jax.jit(run)


def _may_be_traced(x: object) -> bool:
    return isinstance(x, bool | int | float | complex) or hasattr(x, "dtype")
