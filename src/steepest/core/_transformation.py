"""What a gradient transformation is: a pure `init` and a pure `update`."""

import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import (
    Any,
    NamedTuple,
    Protocol,
    runtime_checkable,
    TYPE_CHECKING,
    TypeVar,
)

import jax

from ._call import Call, Made, recorded
from ._errors import not_a_transformation
from ._like_optax import like_optax
from ._static import Static
from ._swapped import swapped
from ._types import OptState, Params, Updates
from ._written import written


class TransformInitFn(Protocol):
    """`init(params) -> state`: the memory before the first step."""

    def __call__(self, params: Params) -> OptState: ...


class TransformUpdateFn(Protocol):
    """`update(updates, state, params) -> (updates, state)`: one step."""

    def __call__(
        self, updates: Updates, state: OptState, params: Params | None = None
    ) -> tuple[Updates, OptState]: ...


class TransformUpdateExtraArgsFn(Protocol):
    """One step that takes extra arguments, and ignores those it does not know."""

    def __call__(
        self,
        updates: Updates,
        state: OptState,
        params: Params | None = None,
        **extra_args: Any,
    ) -> tuple[Updates, OptState]: ...


@runtime_checkable
class AnyTransformation(Protocol):
    """Any pair of `init` and `update`, also from another library."""

    @property
    def init(self) -> Callable[..., OptState]: ...

    @property
    def update(self) -> Callable[..., tuple[Updates, OptState]]: ...


@like_optax
class GradientTransformation(NamedTuple):
    """A pair of pure functions.

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
    """A pair that knows the call that made it. Every function here returns one.

    It prints as that call, and it can be compared, hashed, copied and pickled. It is a
    pytree whose leaves are the arrays among its hyperparameters; everything else is
    static. So it can be an argument of `jax.jit`, `jax.vmap` and `jax.grad`.
    """

    call: Call | None
    # Set by wrappers: `(call, updates, state, params, extra_args) -> (updates, state)`,
    # a step that is compiled with the optimizer as an argument.
    step: Callable[..., tuple[Updates, OptState]] | None
    _info: object

    def __new__(
        cls,
        init: Callable[..., OptState],
        update: Callable[..., tuple[Updates, OptState]],
        info: object = None,
        step: Callable[..., tuple[Updates, OptState]] | None = None,
    ) -> Any:  # an object of this class
        tx = tuple.__new__(cls, (init, update))
        tx.call, tx._info, tx.step = None, info, step
        return tx

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        _register(cls)

    @classmethod
    def of(cls, call: Call) -> Any:
        """The result of `call`."""
        tx = cls(Init(call), Update(call))
        tx.call = call
        return tx

    @property
    def info(self) -> Any:
        """What the engine knows about it: a plan, or the wrapped transformation."""
        if self.call is None:
            return self._info
        return getattr(self.call.made, "info", None)

    def _replace(self, **fields: Any) -> GradientTransformationExtraArgs:
        """The pair with another function, without the call."""
        both = {"init": self.init, "update": self.update, **fields}
        return GradientTransformationExtraArgs(**both)

    def __repr__(self) -> str:
        return super().__repr__() if self.call is None else written(self)

    def __reduce__(self) -> tuple[object, ...]:
        if self.call is None:
            return type(self), (*self, self._info, self.step)
        return type(self).of, (self.call,)


class _Method(Made):
    """`init` or `update`, as data."""

    call: Call
    _role: str  # "init" or "update"

    def __init__(self, call: Call):
        self.call = call

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.call == other.call  # pyright: ignore

    def __hash__(self) -> int:
        return hash((type(self), self.call))

    def __repr__(self) -> str:
        return f"{written(self.call)}.{self._role}"

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
        **extra_args: object,
    ) -> tuple[Updates, OptState]:
        made = self.call.made
        step = getattr(made, "step", None)
        try:
            if step is not None:
                return step(self.call, updates, state, params, extra_args)
            return made.update(updates, state, params, **extra_args)
        except Exception as error:
            name = self.call.name
            better = swapped(name, made.init, updates, state, params)
            if better is None:
                raise
            raise better from error


def _register_methods() -> None:
    for cls in (Init, Update):
        jax.tree_util.register_pytree_with_keys(
            cls,
            lambda x: x.call.flatten_with_keys(),
            lambda static, arrays, cls=cls: cls(Call.unflatten(static, arrays)),
            lambda x: x.call.flatten(),
        )


def _register(cls: type[Transformation]) -> None:
    def flatten(tx: Transformation) -> tuple[tuple[object, ...], "_Rest | Static"]:
        return (tuple(tx), _rest(tx)) if tx.call is None else tx.call.flatten()

    def flatten_with_keys(
        tx: Transformation,
    ) -> tuple[Sequence[tuple[object, object]], "_Rest | Static"]:
        if tx.call is not None:
            return tx.call.flatten_with_keys()
        names = map(jax.tree_util.GetAttrKey, ("init", "update"))
        return tuple(zip(names, tx, strict=True)), _rest(tx)

    def unflatten(
        static: "_Rest | Static", children: Iterable[object]
    ) -> Transformation:
        if isinstance(static, _Rest):
            return cls(*children, *static)  # pyright: ignore[reportCallIssue]
        return cls.of(Call.unflatten(static, children))

    jax.tree_util.register_pytree_with_keys(cls, flatten_with_keys, unflatten, flatten)


class _Rest(NamedTuple):
    """The fields of a pair without a call, besides its two functions."""

    info: object
    step: object


def _rest(tx: Transformation) -> _Rest:
    return _Rest(tx.info, tx.step)


F = TypeVar("F", bound=Callable[..., GradientTransformation])


def transformation(function: F) -> F:
    """Decorate a function that makes a transformation: the result knows its call.

    Args:
        function: a function at module level that only makes a transformation. It may
            be called again with the same arguments.

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
    """The state of a transformation without memory."""


def init_empty_state(params: Params) -> EmptyState:
    """The `init` of a transformation without memory.

    Args:
        params: the params, which are ignored.
    """
    del params
    return EmptyState()


@transformation
def stateless(
    f: Callable[[Updates, Params | None], Updates],
) -> GradientTransformationExtraArgs:
    """The transformation `updates <- f(updates, params)`, without memory.

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
        **extra_args: object,
    ) -> tuple[Updates, OptState]:
        del extra_args
        return f(updates, params), state

    return GradientTransformationExtraArgs(init_empty_state, update)


def with_extra_args_support(
    tx: AnyTransformation,
) -> GradientTransformationExtraArgs:
    """`tx` with an `update` that accepts extra arguments, and ignores unknown ones.

    Args:
        tx: any transformation. One that accepts extra arguments is returned unchanged.
            A pair from another library accepts them if its `update` has a `**`.
    """
    return as_inner("with_extra_args_support", "tx", tx)


def as_inner(
    name: str, place: str, tx: AnyTransformation
) -> GradientTransformationExtraArgs:
    """`with_extra_args_support` for an argument of another function.

    Args:
        name: name used in error messages.
        place: the name of the argument.
        tx: any transformation; other objects are an error.
    """
    if isinstance(tx, GradientTransformationExtraArgs):
        return tx
    whole: object = getattr(tx, "gradient_transformation", None)
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
        **extra_args: object,
    ) -> tuple[Updates, OptState]:
        del extra_args
        return tx.update(updates, state, params)

    return GradientTransformationExtraArgs(tx.init, update)


def _has_double_star(f: Callable[..., object]) -> bool:
    arguments = inspect.signature(f).parameters.values()
    return any(a.kind is a.VAR_KEYWORD for a in arguments)


_register_methods()
_register(Transformation)
