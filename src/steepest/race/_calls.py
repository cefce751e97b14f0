"""Calls the functions of a problem, whether or not it has model state.

A plain problem has an empty model state, `None`, which has no arrays.
"""

import inspect
from collections.abc import Callable, Mapping

import jax
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, PyTree

from ._problem import Batch, Data, Params, Problem, State

_PLAIN = {
    "init": ("key",),
    "batches": ("key", "data"),
    "loss": ("params", "batch"),
    "metric": ("params", "data"),
    "adjust": ("params", "batch"),
}
_STATEFUL = {
    "loss": ("params", "state", "batch", "key"),
    "metric": ("params", "state", "data"),
}


def argument_names(problem: Problem, field: str) -> tuple[str, ...]:
    """The arguments that a function of the problem takes.

    Args:
        problem: the problem.
        field: the name of the function.
    """
    names = {**_PLAIN, **(_STATEFUL if problem.stateful else {})}[field]
    if field == "batches" and takes(problem.batches, "step"):
        return *names, "step"
    return names


def takes(function: Callable[..., object], name: str) -> bool:
    """Whether a function has an argument of this name.

    Args:
        function: any callable; of a class, its `__init__`.
        name: of the argument.
    """
    function = inspect.unwrap(function)
    if isinstance(function, type):  # a metaclass may hide the signature
        function = function.__init__
    try:
        return name in inspect.signature(function).parameters
    except (TypeError, ValueError):  # some builtins have no signature
        return False


def examples(problem: Problem) -> Mapping[str, PyTree]:
    """An example of every argument: mostly shapes and dtypes, nothing is computed.

    Args:
        problem: a checked problem.
    """
    key = jax.eval_shape(jax.random.key, np.uint32(0))
    step = np.int32(0)
    params, state = jax.eval_shape(lambda key: initial(problem, key), key)
    pick = lambda key, data, step: batch_of(problem, key, data, step)
    batch = jax.eval_shape(pick, key, problem.data, step)
    return {
        "key": key,
        "data": problem.data,
        "step": step,
        "params": params,
        "state": state,
        "batch": batch,
    }


def initial(problem: Problem, key: Array) -> tuple[Params, State]:
    """The initial params and the initial model state.

    Args:
        problem: the problem.
        key: of the seed.
    """
    return problem.init(key) if problem.stateful else (problem.init(key), None)


def batch_of(problem: Problem, key: Array, data: Data, step: ArrayLike) -> Batch:
    """The batch of one step.

    Args:
        problem: the problem.
        key: of the seed and the step.
        data: the problem's.
        step: number of steps taken before.
    """
    if takes(problem.batches, "step"):
        return problem.batches(key, data, step)
    return problem.batches(key, data)


def loss_of(
    problem: Problem, params: Params, state: State, batch: Batch, key: Array
) -> tuple[ArrayLike, State]:
    """The loss, and the model state after it.

    Args:
        problem: the problem.
        params: of the model.
        state: of the model.
        batch: of the step.
        key: of the seed and the step.
    """
    if problem.stateful:
        return problem.loss(params, state, batch, key)
    return problem.loss(params, batch), None


def metric_of(
    problem: Problem, params: Params, state: State, data: Data
) -> ArrayLike | None:
    """The metric; `None` if the problem has none of its own.

    Args:
        problem: the problem.
        params: of the model.
        state: of the model.
        data: the problem's.
    """
    if problem.metric is None:
        return None
    arguments = (params, state, data) if problem.stateful else (params, data)
    return problem.metric(*arguments)
