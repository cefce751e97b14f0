"""All runs of one optimizer, as one compiled program.

The program begins or goes on, takes some steps, and measures. It is compiled once: how
many steps, and whether they are the first, it is told when it runs.
"""

import hashlib
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, PartitionSpec as P

from ._devices import devices_for
from ._model import Model, Run
from ._plan import Plan

Saved = list[np.ndarray]  # of bytes: what the runs go on with


class Program:
    """Every learning rate from every seed, side by side, on all devices there are.

    Args:
        model: one run, as functions of a learning rate and a seed.
        plan: the learning rates and the seeds.
    """

    def __init__(self, model: Model, plan: Plan) -> None:
        self.model, self.plan = model, plan
        self._mesh = Mesh(np.array(devices_for(len(plan.rates))), ("rates",))
        rates = [np.nan if rate is None else rate for rate in plan.rates]
        fill = -len(rates) % self._mesh.size  # so that every device has as many
        self._rates = np.array([*rates, *rates[-1:] * fill], np.float32)
        self._seeds = np.array(plan.seeds, np.uint32)
        shape = len(self._seeds), len(self._rates)
        self._shapes = [(*shape, *x.shape) for x in self._one]

    @cached_property
    def lowered(self) -> Any:
        """The program, traced."""
        return jax.jit(self._program(), donate_argnums=2).lower(
            *self._arguments(self.empty(), 0, 0, True)
        )

    @cached_property
    def compiled(self) -> Callable[..., Any]:
        """The program, ready to run."""
        return self.lowered.compile()

    @cached_property
    def fingerprint(self) -> str:
        """A digest of the program: what one saves is of no use to another."""
        return hashlib.sha256(self.lowered.as_text().encode()).hexdigest()

    @property
    def parameters(self) -> int:
        """How many numbers the model has."""
        return sum(x.size for x in self._params)

    @property
    def bytes_per_param(self) -> float:
        """What the optimizer keeps beside the params."""
        return (_bytes(self._one) - _bytes(self._params)) / max(self.parameters, 1)

    def empty(self) -> list[Any]:
        """Memory for the runs."""
        pairs = zip(self._shapes, self._one, strict=True)
        return [np.zeros(shape, x.dtype) for shape, x in pairs]

    def go_on(
        self, runs: list[Any], start: int, count: int, fresh: bool = False
    ) -> Any:
        """Take some steps: the runs after them, and what is to be seen.

        That is (3, rates, seeds): the first step's loss, the mean loss, the metric.

        Args:
            runs: what they go on with; it is given up.
            start: how many steps were taken.
            count: how many to take.
            fresh: whether to begin, whatever `runs` are.
        """
        arguments = self._arguments(runs, start, count, fresh)
        runs, told = jax.block_until_ready(self.compiled(*arguments))
        told = np.stack([np.asarray(x, np.float64).T for x in told])
        return runs, told[:, : len(self.plan.rates)]

    def save(self, runs: list[Any]) -> Saved:
        """What the runs go on with.

        Args:
            runs: as `go_on` returns them.
        """
        return [np.frombuffer(x.tobytes(), np.uint8) for x in jax.device_get(runs)]

    def load(self, saved: Saved) -> list[Any]:
        """The runs that were saved.

        Args:
            saved: by the same program.
        """
        rows = zip(saved, self._shapes, self._one, strict=True)
        return [np.frombuffer(x, like.dtype).reshape(shape) for x, shape, like in rows]

    def _arguments(self, runs: Any, start: int, count: int, fresh: bool) -> Any:
        numbers = np.int32(start), np.int32(count), np.bool_(fresh)
        return self._rates, self._seeds, runs, *numbers, self.model.problem.data

    @cached_property
    def _params(self) -> list[Any]:
        key = jax.eval_shape(jax.random.key, np.uint32(0))
        return jax.tree.leaves(jax.eval_shape(self.model.problem.init, key))

    @cached_property
    def _run(self) -> Any:
        """Shapes and dtypes of one run."""
        return jax.eval_shape(self.model.start, np.float32(0), np.uint32(0))

    @cached_property
    def _one(self) -> list[Any]:
        """The same of what is kept of one run."""
        return jax.eval_shape(_bare, self._run)

    def _program(self) -> Callable[..., Any]:
        over_rates = jax.vmap(self._some_steps, (0, None, 0, None, None, None, None))
        both = jax.vmap(over_rates, (None, 0, 0, None, None, None, None))
        if self._mesh.size == 1:
            return both
        every, rates, runs = P(), P("rates"), P(None, "rates")
        # Runs know nothing of each other: there is nothing to check.
        return jax.shard_map(
            both,
            mesh=self._mesh,
            in_specs=(rates, every, runs, every, every, every, every),
            out_specs=runs,
            check_vma=False,
        )

    def _some_steps(
        self,
        rate: Any,
        seed: Any,
        leaves: Any,
        start: Any,
        count: Any,
        fresh: Any,
        data: Any,
    ) -> Any:
        """One run takes its steps `start` to `start + count`, and is measured."""
        model = self.model
        begin = lambda: _bare(model.start(rate, seed))
        run = _dressed(jax.lax.cond(fresh, begin, lambda: leaves), self._run)

        def step(k: Any, carry: Any) -> Any:
            run, first, total = carry
            run, value = model.step(rate, seed, start + k, run, data)
            return run, jnp.where(k == 0, value, first), total + value

        none = jnp.zeros(())
        run, first, total = jax.lax.fori_loop(0, count, step, (run, none, none))
        mean = total / count.astype(total.dtype)
        return _bare(run), (first, mean, model.metric(seed, run, data))


def _bare(run: Run) -> list[Any]:
    """Arrays of numbers: keys, too, and none whose dtype gives way."""
    strong = lambda x: jax.random.key_data(x) if _is_key(x) else x.astype(x.dtype)
    return [strong(jnp.asarray(x)) for x in jax.tree.leaves(run)]


def _dressed(leaves: list[Any], like: Run) -> Run:
    """The run that `_bare` has made arrays of."""
    kinds: list[Any] = []  # of keys; a shape does not tell, but a traced array does
    kind = lambda x: jax.random.key_impl(x) if _is_key(x) else None
    jax.eval_shape(lambda run: kinds.extend(map(kind, jax.tree.leaves(run))), like)
    pairs = zip(leaves, kinds, strict=True)
    dressed = [jax.random.wrap_key_data(x, impl=k) if k else x for x, k in pairs]
    return jax.tree.unflatten(jax.tree.structure(like), dressed)


def _is_key(x: Any) -> bool:
    return jnp.issubdtype(x.dtype, jax.dtypes.prng_key)


def _bytes(leaves: Sequence[Any]) -> int:
    return sum(x.size * x.dtype.itemsize for x in leaves)
