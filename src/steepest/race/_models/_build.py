"""Makes a problem of a model, a loss of the user's and data."""

import contextlib
import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, PyTree

from .._arguments import check_arguments
from .._calls import takes
from .._options import DataOptions, Metric, Options
from .._problem import Batch, Data, Params, Problem, State
from .._purity import draws
from .._values import COUNT, is_count
from ._data import mean_over_rows, prepared

_LABELS = "label", "labels", "y", "target", "targets"
_UNNAMED = "function"
# What others call the arguments `key` and `train`.
_OTHERS = {
    "key": "rng rngs rng_key prng_key dropout_key dropout_rng",
    "train": "training is_training is_train deterministic inference",
}


@dataclass(frozen=True)
class Adapter:
    """A model of some library, as pure functions.

    Attributes:
        init: `init(key, batch) -> (params, state)`, for a batch of zeros.
        call: `call(function, params, state, batch, key, train) -> (result, state)`. It
            calls a loss or a metric of the user's with the model, in training or
            evaluation mode.
    """

    init: Callable[[Array, Batch], tuple[Params, State]]
    call: Callable[..., tuple[Any, State]]


def build(
    name: str,
    adapter: Adapter,
    loss: Callable[..., Any],
    how: DataOptions,
    options: Mapping[str, Any],
) -> Problem:
    """Make a problem.

    Args:
        name: of the function that the user has called, for errors.
        adapter: the model.
        loss: of the user's.
        how: data and metric.
        options: other fields of the problem.
    """
    _check_options(name, options)
    _check_functions(name, loss, how.metric, options)
    steps = options.get("steps", Problem.steps)
    ready = prepared(
        name, how.data, how.validation, how.batch_size, steps, how.buffer_bytes
    )
    size = ready.batch_size if how.eval_batch_size is None else how.eval_batch_size
    if not is_count(size):
        raise ValueError(f"{name}: eval_batch_size is {size!r}, expected {COUNT}.")
    example = jax.eval_shape(
        lambda data: ready.batches(*_arguments(ready.batches, data)), ready.data
    )

    def init(key: Array) -> tuple[Params, State]:
        zeros = lambda x: jnp.zeros(x.shape, x.dtype)
        return adapter.init(key, jax.tree.map(zeros, example))

    def train(
        params: Params, state: State, batch: Batch, key: Array
    ) -> tuple[ArrayLike, State]:
        result, state = adapter.call(loss, params, state, batch, key, True)
        return _first(result), state

    def evaluate(params: Params, state: State, batch: Batch, key: Array) -> ArrayLike:
        measured = how.metric if callable(how.metric) else loss
        result, _ = adapter.call(measured, params, state, batch, key, False)
        if how.metric == "accuracy":
            return _accuracy(name, result, batch)
        return _first(result)

    def metric(params: Params, state: State, data: Data) -> Array:
        key = jax.random.key(0)  # the same draws at every evaluation
        one = lambda batch: evaluate(params, state, batch, key)
        return mean_over_rows(one, data["validation"], int(size))

    # Mistakes in the user's functions are errors here, with the user's lines.
    key = jax.random.key(0)
    begun = jax.eval_shape(init, key)
    jax.eval_shape(train, *begun, example, key)
    remarks = (*ready.remarks, *_still_random(evaluate, *begun, example, key))
    remarks += (*_defaults("loss", loss), *_defaults("metric", how.metric))

    return Problem(
        init=init,
        loss=train,
        batches=ready.batches,
        metric=metric,
        data=ready.data,
        stateful=True,
        cycle=ready.cycle,
        remarks=remarks,
        **{**_measure(how.metric), **options},
    )


def called(
    name: str,
    function: Callable[..., Any],
    arguments: Mapping[str, Any],
    key: Array,
    train: bool,
) -> Any:
    """Call a loss or a metric of the user's.

    Args:
        name: of the function that the user has called, for errors.
        function: of the user's.
        arguments: its positional arguments, by their names in the documentation.
        key: for an argument `key`, if it has one.
        train: for an argument `train`, if it has one.
    """
    values = {"key": key, "train": train}
    more = {name: x for name, x in values.items() if takes(function, name)}
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # some builtins have none
        return function(*arguments.values(), **more)
    try:
        signature.bind(*arguments.values(), **more)
    except TypeError as error:
        call = f"{_name_of(function)}({', '.join([*arguments, *more])})"
        raise TypeError(
            f"{name}: `{call}` does not fit the signature {_name_of(function)}"
            f"{signature}: {error}. A batch is one argument: unpack it inside, `x, y "
            "= batch`. Further arguments may be `key` and `train`."
        ) from error
    return function(*arguments.values(), **more)


def made(name: str, maker: Callable[..., Any], argument: str, value: Any) -> Any:
    """Make a model, of a keyword argument if the maker has it.

    Args:
        name: of the function that the user has called, for errors.
        maker: a class or a function of the user's.
        argument: the name of its argument, in the documentation.
        value: of the argument.
    """
    try:
        if takes(maker, argument):
            return maker(**{argument: value})
        if takes(maker, "kwargs"):  # a wrapper that hides its signature
            with contextlib.suppress(TypeError):
                return maker(**{argument: value})
        return maker(value)
    except TypeError as error:
        raise TypeError(
            f"{name}: model could not be made. {error}. Pass a function of one "
            f"argument, such as `lambda {argument}: MLP(4, 2, {argument}={argument})`."
        ) from error


def missing(name: str, package: str) -> ImportError:
    """The error for a library that is not installed.

    Args:
        name: of the function that the user has called.
        package: of the library.
    """
    return ImportError(
        f"{name} needs the package {package}, which is not installed. Run "
        f"`pip install {package}`."
    )


def split_result(name: str, result: Any) -> tuple[Any, State]:
    """Split what a function with model state returns: the rest, and the state.

    Args:
        name: of the function that the user has called, for errors.
        result: `(value, state)` or `(value, state, logits)`.
    """
    if not isinstance(result, tuple) or len(result) not in (2, 3):
        raise TypeError(
            f"{name}: the model has state, and a function returned a "
            f"{type(result).__name__}, expected `(value, state)` or `(value, state, "
            "logits)`."
        )
    value, state, *logits = result
    return (value, *logits) if logits else value, state


def _still_random(evaluate: Callable[..., Any], *args: PyTree) -> Iterator[str]:
    """A remark if the evaluation depends on random keys."""
    if draws(evaluate, *args):
        yield (
            "The metric depends on random keys. If the model has dropout, it is not "
            "turned off in evaluation."
        )


def _defaults(field: str, function: Any) -> Iterator[str]:
    """A remark if a key or a mode of the user's function keeps its default."""
    for name, others in _OTHERS.items() if callable(function) else ():
        for other in others.split():
            if takes(function, other) and not takes(function, name):
                yield (
                    f"`{field}` has an argument `{other}`, which keeps its default in "
                    "training and evaluation: the race passes only `key` and `train`. "
                    f"Rename it `{name}`, or pass it on from there."
                )


def _arguments(batches: Callable[..., Any], data: PyTree) -> tuple[Any, ...]:
    """Example arguments of `batches`."""
    step = (jnp.int32(0),) if takes(batches, "step") else ()
    return jax.random.key(0), data, *step


def _name_of(function: Callable[..., Any]) -> str:
    name = getattr(function, "__name__", _UNNAMED)
    return _UNNAMED if name == "<lambda>" else name


def _first(result: Any) -> Any:
    """The value of a loss that may also return logits."""
    return result[0] if isinstance(result, tuple) and result else result


def _accuracy(name: str, result: Any, batch: Batch) -> Array:
    """The part of the rows where the largest logit is at the label."""
    if not (isinstance(result, tuple) and len(result) == 2):
        raise TypeError(
            f'{name}: metric="accuracy" needs a loss that also returns the logits: '
            "`return value, logits`. Or pass a function as `metric`."
        )
    if isinstance(batch, dict):
        labels = next((batch[key] for key in _LABELS if key in batch), None)
    else:
        rest = list(batch[1:2]) if isinstance(batch, tuple | list) else []
        labels = rest[0] if rest else None
    logits = result[1]
    if labels is None or jnp.shape(labels) != jnp.shape(logits)[:-1]:
        raise TypeError(
            f'{name}: metric="accuracy" needs one label for each row of the logits, '
            f"of shape {jnp.shape(logits)}: the second array of a batch, or the one "
            f"under one of the keys {', '.join(_LABELS)}. Pass a function as `metric`."
        )
    if jnp.shape(logits)[-1] == 1:  # its argmax is always 0
        raise TypeError(
            f'{name}: metric="accuracy" got one logit for each row, of shape '
            f"{jnp.shape(logits)}, expected one for each class. Return the logits of "
            "both classes, `jnp.concatenate([0 * logits, logits], axis=-1)`, or pass a "
            "function as `metric`."
        )
    right = jnp.argmax(logits, axis=-1).astype(labels.dtype) == labels
    return jnp.mean(right.astype(jnp.result_type(float)))


def _measure(metric: Metric) -> dict[str, str]:
    """The default name of the metric, and which way it is better."""
    if metric is None:
        return {"measure": "validation loss"}
    if metric == "accuracy":
        return {"measure": "accuracy", "better": "higher"}
    name = _name_of(metric)
    return {"measure": "metric" if name == _UNNAMED else name}


def _check_options(name: str, options: Mapping[str, Any]) -> None:
    """Raise if an argument is neither one of the function nor a field to pass on."""
    more = [field.name for field in fields(DataOptions)]
    check_arguments(name, options, [*Options.__annotations__], more)


def _check_functions(
    name: str, loss: object, metric: object, options: Mapping[str, Any]
) -> None:
    if not callable(loss):
        raise TypeError(f"{name}: loss is {loss!r}, expected a function.")
    if not (metric is None or metric == "accuracy" or callable(metric)):
        raise TypeError(
            f'{name}: metric is {metric!r}, expected a function, "accuracy" or None.'
        )
    if callable(metric) and "better" not in options:
        raise ValueError(
            f"{name}: `better` is missing. With a metric of your own, pass "
            'better="higher" or better="lower".'
        )
