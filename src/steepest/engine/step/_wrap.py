"""What a transformation around another one needs: to compile, and to be inspected."""

from collections.abc import Callable, Collection
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
from jax.core import Tracer

from ...core import (
    AnyTransformation,
    Call,
    OptState,
    Params,
    Static,
    Transformation,
)
from ._hold import Step
from ._own_code import only_own_code


class WrapperInfo(NamedTuple):
    """What a wrapper says of itself, for `describe` and `read`."""

    name: str
    tx: AnyTransformation  # what it is around
    at: str  # the field of its state where that one's is; "" for the state itself

    def inner(self, state: OptState) -> OptState:
        """Of the wrapper's state, that of what it is around."""
        return getattr(state, self.at) if self.at else state


class Decide(NamedTuple):
    """The part of a wrapper's step that runs functions of the user's."""

    function: Callable[..., Any]  # (updates, state, params, **extra) -> arrays
    asks: tuple[str, ...]  # the arguments of the wrapper that only it calls


def wrapping(
    init: Callable[[Params], OptState],
    update: Callable[..., Step],
    info: WrapperInfo | None = None,
    decide: Decide | None = None,
    ready: Callable[..., OptState] | None = None,
) -> Transformation:
    """The pair of `init` and `update`, where `update` compiles as a whole if it can.

    A wrapper makes new functions in every step (the branches of a condition, an
    optimizer with the current hyperparameters), and JAX compiles what is new. Under one
    `jit` they are made once for each structure. The optimizer is an argument of that
    `jit`, so one program serves every learning rate.

    Code of the user's is never compiled here: a schedule, a condition, a mask, a
    transformation or a function among the extra arguments runs as it is, and sees
    concrete values in every step. Where only `decide` has such code, the rest is
    compiled.

    Args:
        init: of the wrapper.
        update: of the wrapper. Its first argument is what `decide` returned, if there
            is such a function.
        info: what it is a wrapper of.
        decide: what runs functions of the user's.
        ready: `(updates, state, params) -> state`, before all else and never compiled.
    """

    def whole(
        updates: Any, state: OptState, params: Params | None = None, **extra_args: Any
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
    updates: Any,
    state: OptState,
    params: Params | None,
    extra_args: dict[str, Any],
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
    """`only_own_code`, asked once for each call."""
    known = call.__dict__.setdefault("compiles", {})
    if apart_from not in known:
        known[apart_from] = only_own_code(call, apart_from)
    return known[apart_from]


# A compiled step of two small leaves takes about 3.5 MB.
@lru_cache(maxsize=128)
def _compiled(static: Static, part: str) -> Callable[..., Step]:
    """The step of a wrapper, or what comes after `decide`, with its arrays first."""

    def run(arrays: Any, first: Any, *args: Any, **extra_args: Any) -> Step:
        wrapper = Call.unflatten(static, arrays).made.step.args[0]
        return getattr(wrapper, part)(*first, *args, **extra_args)

    return jax.jit(run)


def _may_be_traced(x: Any) -> bool:
    return isinstance(x, bool | int | float | complex) or hasattr(x, "dtype")
