"""What a gradient transformation is: a pure `init` and a pure `update`."""

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, runtime_checkable, TYPE_CHECKING, TypeVar

import jax

from ._call import Call, Made, recorded
from ._errors import not_a_transformation
from ._like_optax import like_optax
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

    init: TransformInitFn
    update: TransformUpdateFn


@like_optax
class GradientTransformationExtraArgs(GradientTransformation):
    """A pair whose `update` takes any keyword and ignores those it does not need.

    update(updates, state, params=None, **extra_args) -> (updates, state)
    """

    if TYPE_CHECKING:
        update: TransformUpdateExtraArgsFn  # pyright: ignore


class Transformation(GradientTransformationExtraArgs, Made):
    """A pair that knows how it was made. It is what every function here returns.

    It prints as the call that makes it. It is equal to one that was made in the same
    way; it can be hashed, copied and pickled. As a pytree it has the arrays among its
    hyperparameters for leaves, so it can be an argument of `jax.jit`, `jax.vmap` and
    `jax.grad`. The rest is static.
    """

    call: Any  # a Call: which function has made it, with which arguments
    # Of a wrapper: `(call, updates, state, params, extra_args) -> (updates, state)`, a
    # step that is compiled with the optimizer as an argument.
    step: Callable[..., Any] | None
    _info: Any

    def __new__(
        cls,
        init: Callable[..., OptState],
        update: Callable[..., tuple[Updates, OptState]],
        info: Any = None,
        step: Callable[..., Any] | None = None,
    ) -> Any:  # an object of this class
        tx = tuple.__new__(cls, (init, update))
        tx.call, tx._info, tx.step = None, info, step
        return tx

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        _register(cls)

    @classmethod
    def of(cls, call: Call) -> Any:
        """What `call` makes."""
        tx = cls(Init(call), Update(call))
        tx.call = call
        return tx

    @property
    def info(self) -> Any:
        """What the engine knows of it: a plan, or what it wraps."""
        if self.call is None:
            return self._info
        return getattr(self.call.made, "info", None)

    def _replace(self, **fields: Any) -> GradientTransformationExtraArgs:
        """The pair with another function: how it was made is no longer known."""
        both = {"init": self.init, "update": self.update, **fields}
        return GradientTransformationExtraArgs(**both)

    def __repr__(self) -> str:
        return super().__repr__() if self.call is None else repr(self.call)

    def __reduce__(self) -> tuple[Any, ...]:
        if self.call is None:
            return type(self), (*self, self._info, self.step)
        return type(self).of, (self.call,)


class _Method(Made):
    """One of the two functions of a pair, as data."""

    call: Call
    _role: str  # "init" or "update"

    def __init__(self, call: Call):
        self.call = call

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.call == other.call  # pyright: ignore

    def __hash__(self) -> int:
        return hash((type(self), self.call))

    def __repr__(self) -> str:
        return f"{self.call!r}.{self._role}"

    @property
    def __name__(self) -> str:
        return f"{self.call.name}_{self._role}"


class Init(_Method):
    """The `init` of a pair."""

    _role = "init"

    def __call__(self, params: Params) -> OptState:
        return self.call.made.init(params)


class Update(_Method):
    """The `update` of a pair."""

    _role = "update"

    def __call__(
        self,
        updates: Updates,
        state: OptState,
        params: Params | None = None,
        **extra_args: Any,
    ) -> tuple[Updates, OptState]:
        made = self.call.made
        step = getattr(made, "step", None)
        if step is not None:
            return step(self.call, updates, state, params, extra_args)
        return made.update(updates, state, params, **extra_args)


def _register_methods() -> None:
    for cls in (Init, Update):
        jax.tree_util.register_pytree_with_keys(
            cls,
            lambda x: x.call.flatten_with_keys(),
            lambda static, arrays, cls=cls: cls(Call.unflatten(static, arrays)),
            lambda x: x.call.flatten(),
        )


def _register(cls: type[Transformation]) -> None:
    def flatten(tx: Transformation) -> Any:
        return (tuple(tx), _rest(tx)) if tx.call is None else tx.call.flatten()

    def flatten_with_keys(tx: Transformation) -> Any:
        if tx.call is not None:
            return tx.call.flatten_with_keys()
        names = map(jax.tree_util.GetAttrKey, ("init", "update"))
        return tuple(zip(names, tx, strict=True)), _rest(tx)

    def unflatten(static: Any, children: Any) -> Transformation:
        if isinstance(static, _Rest):
            return cls(*children, *static)  # pyright: ignore[reportCallIssue]
        return cls.of(Call.unflatten(static, children))

    jax.tree_util.register_pytree_with_keys(cls, flatten_with_keys, unflatten, flatten)


class _Rest(NamedTuple):
    """Of a pair that does not know how it was made, all but the two functions."""

    info: Any
    step: Any


def _rest(tx: Transformation) -> _Rest:
    return _Rest(tx.info, tx.step)


F = TypeVar("F", bound=Callable[..., GradientTransformation])


def transformation(function: F) -> F:
    """Let what `function` returns know how it was made. For functions of module level.

    Args:
        function: makes a transformation, and does nothing else: it may be called again
            with the same arguments.

    >>> import steepest
    >>> @steepest.transformation
    ... def clipped_sgd(learning_rate, max_norm=1.0):
    ...     clip = steepest.clip_by_global_norm(max_norm)
    ...     return steepest.chain(clip, steepest.sgd(learning_rate))
    >>> clipped_sgd(0.1)
    clipped_sgd(learning_rate=0.1, max_norm=1.0)
    """
    check = lambda name, tx: as_inner(name, "the result", tx)
    return recorded("transformation", function, Transformation, check)


@like_optax
class EmptyState(NamedTuple):
    """The memory of a transformation that has none."""


def init_empty_state(params: Params) -> EmptyState:
    """The `init` of a transformation that remembers nothing."""
    del params
    return EmptyState()


@transformation
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

    if not callable(f):
        raise TypeError(f"stateless: f is a {type(f).__name__}, expected a function.")

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
    name: str, place: str, tx: AnyTransformation
) -> GradientTransformationExtraArgs:
    """`with_extra_args_support`, of what another transformation was given to wrap.

    Args:
        name: name used in error messages.
        place: which of its arguments this is.
        tx: any transformation; what is none is refused.
    """
    if isinstance(tx, GradientTransformationExtraArgs):
        return tx
    whole: Any = getattr(tx, "gradient_transformation", None)
    if callable(whole):  # `MultiSteps`, ours or Optax's
        return as_inner(name, place, whole())  # pyright: ignore[reportArgumentType]
    if not isinstance(tx, AnyTransformation):
        raise not_a_transformation(name, place, tx)
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


_register_methods()
_register(Transformation)
