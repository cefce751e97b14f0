"""Problems made of Flax linen modules."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
from jaxtyping import Array, PyTree

from .._options import DataOptions, Options
from .._problem import Batch, Params, Problem, State
from ._build import Adapter, build, called, missing

_NAME = "Problem.from_linen"
_PARAMS = "params"


def linen_problem(
    module: Any,
    loss: Callable[..., Any],
    how: DataOptions,
    init: Callable[[Array], PyTree] | None,
    rngs: Sequence[str],
    options: Options,
) -> Problem:
    """Make a problem of a linen module.

    Args:
        module, loss, init, rngs: as for `Problem.from_linen`.
        how: data and metric.
        options: other fields of the problem.
    """
    try:
        from flax import linen
    except ImportError as error:
        raise missing(_NAME, "flax") from error
    if not isinstance(module, linen.Module):
        raise TypeError(
            f"{_NAME}: module is a {type(module).__name__}, expected a linen module, "
            "such as `CNN(features=32)`."
        )

    def begin(key: Array, batch: Batch) -> tuple[Params, State]:
        if init is not None:
            variables = init(key)
        else:
            first = _Initial(module, key, rngs)
            called(_NAME, loss, {"model": first, "batch": batch}, key, True)
            variables = first.variables
        if not variables or _PARAMS not in variables:
            raise ValueError(
                f"{_NAME}: there are no params: the loss did not call the model, or "
                'the variables have no collection "params".'
            )
        variables = dict(linen.meta.unbox(variables))
        return variables.pop(_PARAMS), variables

    def call(
        function: Callable[..., Any],
        params: Params,
        state: State,
        batch: Batch,
        key: Array,
        train: bool,
    ) -> tuple[Any, State]:
        model = _Applied(module, {_PARAMS: params, **state}, key, rngs, train)
        arguments = {"model": model, "batch": batch}
        result = called(_NAME, function, arguments, key, train)
        return result, {name: model.variables[name] for name in state}

    return build(_NAME, Adapter(begin, call), loss, how, options)


class _Applied:
    """A module with its variables, called like a function."""

    def __init__(
        self, module: Any, variables: Any, key: Array, rngs: Sequence[str], train: bool
    ) -> None:
        self.module, self.variables = module, variables
        self._key, self._streams, self._train = key, rngs, train

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Apply the module, and remember the variables that it changes."""
        mutable = [x for x in self.variables if x != _PARAMS] if self._train else []
        how = {"rngs": self._rngs(self._streams), "mutable": mutable or False}
        result = self.module.apply(self.variables, *args, **how, **kwargs)
        if not mutable:
            return result
        result, changed = result
        self.variables = {**self.variables, **changed}
        return result

    def _rngs(self, names: Sequence[str]) -> dict[str, Array]:
        """A key for every stream, other ones at every call."""
        self._key, own = jax.random.split(self._key)
        return dict(zip(names, jax.random.split(own, len(names)), strict=True))


class _Initial(_Applied):
    """A module without variables: the first call makes them."""

    def __init__(self, module: Any, key: Array, rngs: Sequence[str]) -> None:
        super().__init__(module, {}, key, rngs, True)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Initialise the variables, or apply the module."""
        if self.variables:
            return super().__call__(*args, **kwargs)
        rngs = self._rngs([_PARAMS, *self._streams])
        result, self.variables = self.module.init_with_output(rngs, *args, **kwargs)
        return result
