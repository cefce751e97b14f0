"""Problems made of Flax NNX modules."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, PyTree

from .._options import DataOptions, Options
from .._problem import Batch, Params, Problem, State
from ._build import Adapter, build, called, made, missing

_NAME = "Problem.from_nnx"


def nnx_problem(
    model: Any, loss: Callable[..., Any], how: DataOptions, wrt: Any, options: Options
) -> Problem:
    """Make a problem of an NNX module.

    Args:
        model, loss, wrt: as for `Problem.from_nnx`.
        how: data and metric.
        options: other fields of the problem.
    """
    try:
        from flax import nnx
    except ImportError as error:
        raise missing(_NAME, "flax") from error
    wrt = nnx.Param if wrt is None else wrt
    pure = nnx.to_pure_dict
    split: Any = lambda module: nnx.split(module, wrt, ...)
    # The structure of the model, without its arrays, is the same for every key.
    graph = split(nnx.eval_shape(lambda: _made(nnx, model, jax.random.key(0))))[0]

    def init(key: Array, batch: Batch) -> tuple[Params, State]:
        del batch
        _, params, state = split(_made(nnx, model, key))
        if isinstance(model, nnx.Module):
            return pure(params), _reseeded(pure(state), key)
        return pure(params), pure(state)

    def call(
        function: Callable[..., Any],
        params: Params,
        state: State,
        batch: Batch,
        key: Array,
        train: bool,
    ) -> tuple[Any, State]:
        module = nnx.merge(graph, params, state)
        module.train() if train else module.eval()
        arguments = {"model": module, "batch": batch}
        result = called(_NAME, function, arguments, key, train)
        nnx.pop(module, nnx.Intermediate)  # `sow` adds variables
        return result, pure(split(module)[2])

    return build(_NAME, Adapter(init, call), loss, how, options)


def _made(nnx: Any, model: Any, key: Array) -> Any:
    """A module with initial params of this key, or the one that was passed."""
    if isinstance(model, nnx.Module):
        return model
    if not callable(model):
        raise TypeError(
            f"{_NAME}: model is a {type(model).__name__}, expected a function that "
            "makes a module of `nnx.Rngs`, such as `lambda rngs: MLP(rngs=rngs)`."
        )
    module = made(_NAME, model, "rngs", nnx.Rngs(key))
    if not isinstance(module, nnx.Module):
        raise TypeError(
            f"{_NAME}: model returned a {type(module).__name__}, expected an "
            "`nnx.Module`."
        )
    return module


def _reseeded(state: State, key: Array) -> State:
    """Other keys for every seed, although the module is always the same."""
    leaves, treedef = jax.tree.flatten(state)

    def other(k: int, x: PyTree) -> PyTree:
        if not jnp.issubdtype(x.dtype, jax.dtypes.prng_key):
            return x
        return jax.random.split(jax.random.fold_in(key, k), x.shape)

    return treedef.unflatten([other(k, x) for k, x in enumerate(leaves)])
