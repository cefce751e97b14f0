"""Problems made of Equinox modules."""

import warnings
from collections.abc import Callable
from typing import Any

import jax
from jaxtyping import Array

from .._options import DataOptions, Options
from .._problem import Batch, Params, Problem, State
from ._build import Adapter, build, called, made, missing, split_result

_NAME = "Problem.from_equinox"


def equinox_problem(
    model: Any, loss: Callable[..., Any], how: DataOptions, wrt: Any, options: Options
) -> Problem:
    """Make a problem of an Equinox module.

    Args:
        model, loss, wrt: as for `Problem.from_equinox`.
        how: data and metric.
        options: other fields of the problem.
    """
    try:
        import equinox as eqx
    except ImportError as error:
        raise missing(_NAME, "equinox") from error
    wrt = eqx.is_inexact_array if wrt is None else wrt
    known: list[Any] = []  # what does not depend on the key

    def arrays(key: Array) -> list[Array]:
        module, state, has_state = _made(eqx, model, key)
        dynamic, static = eqx.partition(module, eqx.is_array)
        params, frozen = eqx.partition(dynamic, wrt)
        leaves, structure = jax.tree.flatten((params, (frozen, state)))
        # Every call makes new static fields; the first ones serve all calls, so that
        # trees of two calls have the same structure.
        known.extend([] if known else [static, structure, has_state])
        return leaves

    jax.eval_shape(arrays, jax.random.key(0))
    static, structure, has_state = known

    def init(key: Array, batch: Batch) -> tuple[Params, State]:
        del batch
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the model above has shown its warnings
            return jax.tree.unflatten(structure, arrays(key))

    def call(
        function: Callable[..., Any],
        params: Params,
        state: State,
        batch: Batch,
        key: Array,
        train: bool,
    ) -> tuple[Any, State]:
        frozen, own = state
        module = eqx.combine(params, frozen, static)
        module = module if train else eqx.nn.inference_mode(module)
        if not has_state:
            plain = {"model": module, "batch": batch}
            return called(_NAME, function, plain, key, train), state
        arguments = {"model": module, "state": own, "batch": batch}
        result = called(_NAME, function, arguments, key, train)
        if not train and not isinstance(result, tuple):  # a metric returns no state
            return result, state
        result, own = split_result(_NAME, result)
        return result, (frozen, own)

    return build(_NAME, Adapter(init, call), loss, how, options)


def _made(eqx: Any, model: Any, key: Array) -> tuple[Any, Any, bool]:
    """A module, its state, and whether functions take the state."""
    if isinstance(model, tuple | eqx.Module):
        result = model
    elif callable(model):
        result = made(_NAME, model, "key", key)
    else:
        raise TypeError(
            f"{_NAME}: model is a {type(model).__name__}, expected a function that "
            "makes a module of a key, such as `lambda key: MLP(key)`, or a module."
        )
    if (
        isinstance(result, tuple)
        and len(result) == 2
        and isinstance(result[1], eqx.nn.State)
    ):
        return *result, True
    if not isinstance(result, eqx.Module):
        raise TypeError(
            f"{_NAME}: model made a {type(result).__name__}, expected an `eqx.Module`, "
            "or a pair of a module and its `eqx.nn.State`."
        )
    try:
        module, state = eqx.nn.make_with_state(lambda: result)()
    except ValueError as error:
        raise ValueError(
            f"{_NAME}: the state of the model is missing. Pass the pair `(model, "
            "state)` that `eqx.nn.make_with_state` has made."
        ) from error
    return module, state, bool(jax.tree.leaves(state))
