"""Hyperparameters in the state, where they can be read, scheduled and changed."""

import inspect
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import get_args, NamedTuple, TypeAlias, TypeGuard

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike, DTypeLike
from jaxtyping import Array, Int, PyTree

from .. import check
from ..core import (
    Call,
    call_of,
    GradientTransformation,
    GradientTransformationExtraArgs,
    like_optax,
    OptState,
    Params,
    Real,
    Schedule,
    StatefulSchedule,
    transformation,
    Updates,
    with_extra_args_support,
    written,
)
from ..engine import Decide, wrapping
from ..numerics import increment, wide_dtype, zero_count
from ._wrapped import WrappedSchedule

Factory: TypeAlias = Callable[..., GradientTransformation]
Numbers: TypeAlias = Mapping[str, ArrayLike | np.generic]  # by name


@like_optax
class InjectHyperparamsState(NamedTuple):
    """Optax's older state, without the states of the schedules."""

    count: Int[Array, ""]  # the number of steps taken
    hyperparams: dict[str, ArrayLike]
    inner_state: OptState


@like_optax
class InjectStatefulHyperparamsState(NamedTuple):
    """The hyperparameters and the inner state."""

    count: Int[Array, ""]  # the number of steps taken
    hyperparams: dict[str, ArrayLike]  # by name; assign a number to change one
    hyperparams_states: dict[str, PyTree]  # by name, the state of each schedule
    inner_state: OptState


class _Scheduled(NamedTuple):
    """The results of the schedules in this step."""

    values: dict[str, ArrayLike]  # all hyperparameters, by name
    memories: dict[str, PyTree]  # the new states of the schedules


def inject_hyperparams(
    inner_factory: Factory,
    static_args: str | Iterable[str] = (),
    hyperparam_dtype: DTypeLike | None = None,
) -> Callable[..., GradientTransformationExtraArgs]:
    """Keep the hyperparameters of `inner_factory` in the state.

    Each number is an array in `state.hyperparams`. It can be read, logged and replaced
    during training, without recompilation. A hyperparameter that is a function is a
    schedule, and the state holds its value of the last step. A `StatefulSchedule` also
    receives the extra arguments.

    Arguments that are not numbers are unchanged: `None`, booleans, strings, dtypes,
    masks. Outside `jit`, schedules and your own factories run at every step on
    concrete values, so they may use `if` and read Python objects.

    Args:
        inner_factory: a function that makes a transformation, such as `adamw`.
        static_args: names of numbers or functions to leave unchanged.
        hyperparam_dtype: the dtype of the numbers; by default float32, or float64 if
            the params are float64.

    >>> import jax.numpy as jnp, steepest
    >>> tx = steepest.inject_hyperparams(steepest.sgd)(learning_rate=0.1)
    >>> state = tx.init(jnp.array([1.0]))
    >>> state.hyperparams["learning_rate"] = jnp.array(0.5)
    >>> updates, state = tx.update(jnp.array([1.0]), state)
    >>> float(updates[0])
    -0.5
    """
    _check(inner_factory, static_args, hyperparam_dtype)
    static = {static_args} if isinstance(static_args, str) else set(static_args)
    signature = inspect.signature(inner_factory)
    fixed = static | _fixed(inner_factory, signature)
    title = getattr(inner_factory, "__name__", "inner_factory")

    def make(*args: object, **kwargs: object) -> GradientTransformationExtraArgs:
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(
                f"inject_hyperparams: {title} was called with wrong arguments: {error}."
                f" Its arguments are {list(signature.parameters)}."
            ) from None
        bound.apply_defaults()
        numbers, schedules, rest = _sorted(bound.arguments, fixed)
        # Call it once with Python numbers, to raise errors now and not in a step. This
        # is not done in `injected`, which may run in a trace: schedules may use `if`.
        values = {name: f(f.init()) for name, f in schedules.items()}
        _called(inner_factory, {**rest, **numbers, **values})
        options = tuple(sorted(static)), hyperparam_dtype
        return injected(inner_factory, numbers, schedules, rest, *options)

    make.__signature__ = signature  # pyright: ignore[reportFunctionMemberAccess]
    make.__name__, make.__doc__ = title, inner_factory.__doc__
    return make


@transformation
def injected(
    inner_factory: Factory,
    numbers: Numbers,
    schedules: Mapping[str, StatefulSchedule],
    rest: Mapping[str, object],
    static_args: tuple[str, ...] = (),
    hyperparam_dtype: DTypeLike | None = None,
) -> GradientTransformationExtraArgs:
    """The transformation that `inject_hyperparams(inner_factory)(...)` returns.

    As in Optax, the factory is called at every step with the current numbers, so your
    own factory may compute with them, or use `if`.

    Args:
        inner_factory: a function that makes a transformation.
        numbers, schedules, rest: its arguments, sorted by kind.
        static_args, hyperparam_dtype: as for `inject_hyperparams`.
    """

    def inner(hyperparams: Numbers) -> GradientTransformationExtraArgs:
        return _called(inner_factory, {**rest, **numbers, **hyperparams})

    def as_arrays(values: Numbers, tree: PyTree) -> dict[str, ArrayLike]:
        dtype = hyperparam_dtype or wide_dtype(jax.tree.leaves(tree))
        return {name: _as_array(values[name], dtype) for name in numbers}

    def init(params: Params) -> InjectStatefulHyperparamsState:
        values = as_arrays(numbers, params)
        memories = {name: f.init() for name, f in schedules.items()}
        dtype = hyperparam_dtype or wide_dtype(jax.tree.leaves(params))
        for name, schedule in schedules.items():
            values[name] = _strong(schedule(memories[name]), dtype)
        state = inner(values).init(params)
        return InjectStatefulHyperparamsState(zero_count(), values, memories, state)

    def ready(updates: Updates, state: OptState, params: Params | None) -> OptState:
        """The state with Python numbers as arrays, which avoids recompilation."""
        check.state_of("inject_hyperparams", InjectStatefulHyperparamsState, state)
        values = as_arrays(state.hyperparams, (updates, params))
        return state._replace(hyperparams={**state.hyperparams, **values})

    def update(
        decided: _Scheduled,
        updates: Updates,
        state: InjectStatefulHyperparamsState,
        params: Params | None,
        **extra_args: object,
    ) -> tuple[Updates, InjectStatefulHyperparamsState]:
        values, memories = decided
        updates, inner_state = inner(values).update(
            updates, state.inner_state, params, **extra_args
        )
        count = increment(state.count)
        return updates, InjectStatefulHyperparamsState(
            count, values, memories, inner_state
        )

    decide = partial(_scheduled, schedules, hyperparam_dtype)
    asked = Decide(decide, ("schedules",))
    return wrapping(init, update, decide=asked, ready=ready)


def _scheduled(
    schedules: Mapping[str, StatefulSchedule],
    hyperparam_dtype: DTypeLike | None,
    updates: Updates,
    state: InjectStatefulHyperparamsState,
    params: Params | None,
    **extra_args: object,
) -> _Scheduled:
    """Call the schedules."""
    values, memories = dict(state.hyperparams), dict(state.hyperparams_states)
    dtype = hyperparam_dtype or wide_dtype(jax.tree.leaves((updates, params)))
    for name, schedule in schedules.items():
        values[name] = _strong(schedule(memories[name], **extra_args), dtype)
        memories[name] = schedule.update(memories[name], **extra_args)
    return _Scheduled(values, memories)


def _called(
    factory: Factory, arguments: Mapping[str, object]
) -> GradientTransformationExtraArgs:
    """Call a factory with these arguments, by name."""
    by_name = OrderedDict(arguments)
    bound = inspect.BoundArguments(inspect.signature(factory), by_name)
    return with_extra_args_support(factory(*bound.args, **bound.kwargs))


def _written(call: Call) -> str:
    """The call as a user would type it: `inject_hyperparams(factory)(arguments)`."""
    numbers, schedules = call.arguments["numbers"], call.arguments["schedules"]
    factory, rest = call.arguments["inner_factory"], call.arguments["rest"]
    parameters = inspect.signature(factory).parameters
    schedules = {k: getattr(f, "schedule_fn", f) for k, f in schedules.items()}
    values = {**rest, **numbers, **schedules}
    items = [
        f"{k}={written(values[k])}"
        for k, x in parameters.items()
        if k in values and (k in numbers or values[k] is not x.default)
    ]
    return f"inject_hyperparams({written(factory)})({', '.join(items)})"


injected.__name__ = "inject_hyperparams"  # the name users type
injected.written = _written  # pyright: ignore[reportFunctionMemberAccess]


def _check(
    inner_factory: Factory,
    static_args: str | Iterable[str],
    hyperparam_dtype: DTypeLike | None,
) -> None:
    """Check the arguments of `inject_hyperparams`."""
    name = "inject_hyperparams"
    if not callable(inner_factory):
        raise TypeError(
            f"{name}: inner_factory is a {type(inner_factory).__name__}, expected a "
            "function that makes a transformation. Pass the function first and its "
            f"arguments afterwards: `{name}(steepest.adam)(learning_rate=0.1)`."
        )
    if not isinstance(static_args, Iterable):
        raise TypeError(
            f"{name}: static_args is a {type(static_args).__name__}, expected a string "
            "or a list of strings."
        )
    check.dtype(name, hyperparam_dtype=hyperparam_dtype)
    known = list(inspect.signature(inner_factory).parameters)
    static = [static_args] if isinstance(static_args, str) else static_args
    unknown = sorted(set(static) - set(known))
    if unknown:
        raise ValueError(
            f"{name}: static_args has {unknown}, expected arguments of "
            f"{getattr(inner_factory, '__name__', 'the factory')}: {known}. Check the "
            "spelling."
        )


def inject_stateful_hyperparams(
    inner_factory: Factory,
    static_args: str | Iterable[str] = (),
    hyperparam_dtype: DTypeLike | None = None,
) -> Callable[..., GradientTransformationExtraArgs]:
    """The older name of `inject_hyperparams`.

    Args:
        inner_factory: a function that makes a transformation, such as `adamw`.
        static_args: names of numbers or functions to leave unchanged.
        hyperparam_dtype: the dtype of the numbers; by default float32, or float64 if
            the params are float64.
    """
    return inject_hyperparams(inner_factory, static_args, hyperparam_dtype)


def _sorted(
    arguments: Mapping[str, object], static: set[str]
) -> tuple[Numbers, dict[str, StatefulSchedule], dict[str, object]]:
    """Split the arguments into numbers, schedules and the rest."""
    numbers: dict[str, ArrayLike | np.generic] = {}
    schedules: dict[str, StatefulSchedule] = {}
    rest: dict[str, object] = {}
    for name, x in arguments.items():
        if name in static or isinstance(x, bool | np.bool_) or _is_key(x):
            rest[name] = x
        elif isinstance(x, int | float | complex | np.generic | np.ndarray | Array):
            numbers[name] = x
        elif isinstance(x, StatefulSchedule) and not inspect.isclass(x):
            schedules[name] = x
        elif _is_schedule(x, name):
            schedules[name] = WrappedSchedule(x)
        else:
            rest[name] = x
    return numbers, schedules, rest


def _fixed(factory: Factory, signature: inspect.Signature) -> set[str]:
    """Arguments of steepest's own factories that are not numbers, as `rank: int`.

    A number is annotated as `Real`. An `ArrayLike`, such as a random key, is not one.
    """
    if not getattr(factory, "__module__", "").startswith(__name__.split(".")[0] + "."):
        return set()
    kinds = {name: x.annotation for name, x in signature.parameters.items()}
    return {name for name, kind in kinds.items() if not _is_number(kind)}


def _is_number(annotation: object) -> bool:
    kinds = get_args(annotation)
    return all(kind in kinds for kind in get_args(Real)) and np.ndarray not in kinds


def _is_key(x: object) -> bool:
    """Whether `x` is a random key: an array, but not a number."""
    return isinstance(x, Array) and jnp.issubdtype(x.dtype, jax.dtypes.prng_key)


def _is_schedule(x: object, name: str) -> TypeGuard[Schedule]:
    """Whether `x` is a function of the count, not a mask, a dtype or a module."""
    if not callable(x) or inspect.isclass(x) or name.endswith("mask"):
        return False
    made = call_of(x) is not None  # one of steepest's own schedules
    return made or jax.tree_util.all_leaves([x])


def _strong(x: ArrayLike, dtype: DTypeLike) -> Array:
    """The value of a schedule: a weakly typed one in `dtype`, others in their own."""
    if isinstance(x, Array) and not x.weak_type:
        return x
    return _as_array(x, dtype)


def _as_array(x: ArrayLike | np.generic, dtype: DTypeLike) -> Array:
    """A number as an array: real numbers in `dtype`, integers in their own dtype."""
    real = jnp.issubdtype(jnp.result_type(x), jnp.floating)
    x = jnp.asarray(x)
    return x.astype(dtype if real else x.dtype)
