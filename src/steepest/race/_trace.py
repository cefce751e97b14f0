"""One run of an optimizer, traced, with its large constants as arguments."""

from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr, jaxpr_as_fun
from jax.typing import ArrayLike
from jaxtyping import Array, PyTree

from ._calls import initial
from ._hoist import LARGE, size, traced
from ._model import Model, Run
from ._problem import Data


class Traced:
    """The steps of one run, the same for all learning rates and seeds.

    Args:
        model: one run, as functions of a learning rate and a seed.
    """

    def __init__(self, model: Model) -> None:
        self.model = model

    @property
    def parameters(self) -> int:
        """The number of parameters of the model."""
        return sum(x.size for x in self._params)

    @property
    def bytes_per_param(self) -> float:
        """The size of the optimizer's state."""
        others = [*self._params, *jax.tree.leaves(self._run.model_state)]
        own = self.bytes_per_run - sum(map(size, others))
        return own / max(self.parameters, 1)

    @property
    def bytes_per_run(self) -> int:
        """The size of the params and the states of one run."""
        return sum(map(size, self.one))

    @cached_property
    def one(self) -> list[jax.ShapeDtypeStruct]:
        """Shapes and dtypes of the arrays in the params and the states of one run."""
        return jax.eval_shape(_bare, self._run)

    @cached_property
    def arrays(self) -> list[ArrayLike]:
        """What all runs read: the data, and large arrays that functions close over."""
        enclosed = [x for x in self._jaxpr.consts if size(x) >= LARGE]
        return [*enclosed, *jax.tree.leaves(self.model.problem.data)]

    def some_steps(
        self,
        rate: Array,
        seed: Array,
        leaves: list[Array],
        start: Array,
        count: Array,
        fresh: Array,
        arrays: list[Array],
    ) -> tuple[list[Array], list[Array]]:
        """Take the steps `start` to `start + count` of one run, and evaluate it.

        Returns the new leaves, and the first step's loss, the mean loss and the metric.

        Args:
            rate: the learning rate.
            seed: the seed.
            leaves: the arrays in its params and state.
            start: number of steps taken so far.
            count: number of steps to take.
            fresh: whether to initialise the run and ignore `leaves`.
            arrays: what all runs read.
        """
        rest = iter(arrays)
        large = [size(x) >= LARGE for x in self._jaxpr.consts]
        pairs = zip(self._jaxpr.consts, large, strict=True)
        consts = [next(rest) if is_large else x for x, is_large in pairs]
        arguments = rate, seed, *leaves, start, count, fresh, *rest
        results = jaxpr_as_fun(ClosedJaxpr(self._jaxpr.jaxpr, consts))(*arguments)
        return results[: len(leaves)], results[len(leaves) :]

    @cached_property
    def _jaxpr(self) -> ClosedJaxpr:
        return traced(self._some_steps, *self._example(), self.model.problem.data)

    def _example(self) -> tuple[PyTree, ...]:
        """Example arguments with the right shapes."""
        numbers = np.int32(0), np.int32(0), np.bool_(True)
        return np.float32(0), np.uint32(0), self.one, *numbers

    def _some_steps(
        self,
        rate: Array,
        seed: Array,
        leaves: list[Array],
        start: Array,
        count: Array,
        fresh: Array,
        data: Data,
    ) -> tuple[list[Array], tuple[Array, ...]]:
        model = self.model
        begin = lambda: _bare(model.start(rate, seed))
        run = _dressed(jax.lax.cond(fresh, begin, lambda: leaves), self._run)

        def step(k: Array, carry: tuple[Run, Array, Array]) -> tuple[Run, Array, Array]:
            run, first, total = carry
            run, value = model.step(rate, seed, start + k, run, data)
            return run, jnp.where(k == 0, value, first), total + value

        none = jnp.zeros(())
        run, first, total = jax.lax.fori_loop(0, count, step, (run, none, none))
        mean = total / count.astype(total.dtype)
        return _bare(run), (first, mean, model.metric(seed, run, data))

    @cached_property
    def _params(self) -> list[jax.ShapeDtypeStruct]:
        key = jax.eval_shape(jax.random.key, np.uint32(0))
        begin = lambda key: initial(self.model.problem, key)[0]
        return jax.tree.leaves(jax.eval_shape(begin, key))

    @cached_property
    def _run(self) -> Run:
        """Shapes and dtypes of one run."""
        return jax.eval_shape(self.model.start, np.float32(0), np.uint32(0))


def _bare(run: Run) -> list[Array]:
    """The arrays of a run: keys as integers, and no weak types."""
    strong = lambda x: jax.random.key_data(x) if _is_key(x) else x.astype(x.dtype)
    return [strong(jnp.asarray(x)) for x in jax.tree.leaves(run)]


def _dressed(leaves: list[Array], like: Run) -> Run:
    """The inverse of `_bare`."""
    kinds: list[Any] = []  # key types: known to traced arrays, not to their shapes
    kind = lambda x: jax.random.key_impl(x) if _is_key(x) else None
    jax.eval_shape(lambda run: kinds.extend(map(kind, jax.tree.leaves(run))), like)
    pairs = zip(leaves, kinds, strict=True)
    dressed = [jax.random.wrap_key_data(x, impl=k) if k else x for x, k in pairs]
    return jax.tree.unflatten(jax.tree.structure(like), dressed)


def _is_key(x: Array) -> bool:
    return jnp.issubdtype(x.dtype, jax.dtypes.prng_key)
