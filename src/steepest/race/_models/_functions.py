"""Problems made of plain functions, with the same data and metrics as for models."""

from collections.abc import Callable
from typing import Any

from jaxtyping import Array

from .._options import DataOptions, Options
from .._problem import Batch, Params, Problem, State
from ._build import Adapter, build, called, split_result

_NAME = "Problem.from_functions"


def functions_problem(
    init: Callable[[Array], Any],
    loss: Callable[..., Any],
    how: DataOptions,
    stateful: bool,
    options: Options,
) -> Problem:
    """Make a problem of functions.

    Args:
        init, loss, stateful: as for `Problem.from_functions`.
        how: data and metric.
        options: other fields of the problem.
    """
    if not callable(init):
        raise TypeError(f"{_NAME}: init is {init!r}, expected a function of a key.")

    def begin(key: Array, batch: Batch) -> tuple[Params, State]:
        del batch
        result = init(key)
        if not stateful:
            return result, None
        if not (isinstance(result, tuple) and len(result) == 2):
            raise TypeError(
                f"{_NAME}: init returned a {type(result).__name__}, expected a pair "
                "`(params, state)`, because of stateful=True."
            )
        return result

    def call(
        function: Callable[..., Any],
        params: Params,
        state: State,
        batch: Batch,
        key: Array,
        train: bool,
    ) -> tuple[Any, State]:
        if not stateful:
            plain = {"params": params, "batch": batch}
            return called(_NAME, function, plain, key, train), None
        arguments = {"params": params, "state": state, "batch": batch}
        result = called(_NAME, function, arguments, key, train)
        if not train and not isinstance(result, tuple):  # a metric returns no state
            return result, state
        return split_result(_NAME, result)

    return build(_NAME, Adapter(begin, call), loss, how, options)
