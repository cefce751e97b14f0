"""What a gradient transformation is: a pure `init` and a pure `update`."""

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, runtime_checkable

from ._errors import not_a_transformation
from ._like_optax import like_optax
from ._options import function
from ._types import OptState, Params, Updates


class TransformInitFn(Protocol):
    """`init(params) -> state`: the memory before the first step."""

    def __call__(self, params: Params) -> OptState: ...


class TransformUpdateFn(Protocol):
    """`update(updates, state, params) -> (updates, state)`: one step."""

    def __call__(
        self, updates: Updates, state: OptState, params: Params | None = None
    ) -> tuple[Updates, OptState]: ...


class TransformUpdateExtraArgsFn(Protocol):
    """One step that also hears the extra arguments: it takes any, and uses its own."""

    def __call__(
        self,
        updates: Updates,
        state: OptState,
        params: Params | None = None,
        **extra_args: Any,
    ) -> tuple[Updates, OptState]: ...


@runtime_checkable
class AnyTransformation(Protocol):
    """A pair of ours or of another library: what may stand in a chain."""

    @property
    def init(self) -> Callable[..., OptState]: ...

    @property
    def update(self) -> Callable[..., tuple[Updates, OptState]]: ...


@like_optax
class GradientTransformation(NamedTuple):
    """A pair of pure functions, and nothing more.

        init(params) -> state
        update(updates, state, params=None) -> (updates, state)

    The state is a pytree of arrays; the updates look like the params. It unpacks:
    `init, update = tx`.
    """

    init: Callable[..., OptState]  # a TransformInitFn
    update: Callable[..., tuple[Updates, OptState]]  # a TransformUpdateFn


@like_optax
class GradientTransformationExtraArgs(GradientTransformation):
    """A pair whose `update` takes any keyword and ignores those it does not need.

    update(updates, state, params=None, **extra_args) -> (updates, state)
    """


@like_optax
class EmptyState(NamedTuple):
    """The memory of a transformation that has none."""


def init_empty_state(params: Params) -> EmptyState:
    """The `init` of a transformation that remembers nothing."""
    del params
    return EmptyState()


def stateless(
    f: Callable[[Updates, Params | None], Updates],
) -> GradientTransformationExtraArgs:
    """The transformation `updates <- f(updates, params)`, which remembers nothing.

    Args:
        f: a pure function of the whole trees; `params` may be `None`.

    >>> import jax.numpy as jnp
    >>> halve = stateless(lambda updates, params: updates / 2)
    >>> halve.update(jnp.array([2.0, 4.0]), halve.init(None))[0].tolist()
    [1.0, 2.0]
    """

    function("stateless", f=f)

    def update(
        updates: Updates,
        state: OptState,
        params: Params | None = None,
        **extra_args: Any,
    ) -> tuple[Updates, OptState]:
        del extra_args
        return f(updates, params), state

    return GradientTransformationExtraArgs(init_empty_state, update)


def with_extra_args_support(
    tx: AnyTransformation,
) -> GradientTransformationExtraArgs:
    """`tx`, able to hear extra arguments: it ignores them if it does not take any.

    Args:
        tx: any transformation; one that takes extra arguments comes back unchanged.
            A pair of another library takes them if its `update` has a `**`.
    """
    return as_inner("with_extra_args_support", "tx", tx)


def as_inner(
    who: str, place: str, tx: AnyTransformation
) -> GradientTransformationExtraArgs:
    """`with_extra_args_support`, of what another transformation was given to wrap.

    Args:
        who: who speaks in an error.
        place: which of its arguments this is.
        tx: any transformation; what is none is refused.
    """
    if isinstance(tx, GradientTransformationExtraArgs):
        return tx
    if not isinstance(tx, AnyTransformation):
        raise not_a_transformation(who, place, tx)
    if not isinstance(tx, GradientTransformation) and _has_double_star(tx.update):
        return GradientTransformationExtraArgs(tx.init, tx.update)

    def update(
        updates: Updates,
        state: OptState,
        params: Params | None = None,
        **extra_args: Any,
    ) -> tuple[Updates, OptState]:
        del extra_args
        return tx.update(updates, state, params)

    return GradientTransformationExtraArgs(tx.init, update)


def _has_double_star(f: Callable[..., Any]) -> bool:
    arguments = inspect.signature(f).parameters.values()
    return any(a.kind is a.VAR_KEYWORD for a in arguments)
