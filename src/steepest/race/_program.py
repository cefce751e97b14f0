"""All runs of one optimizer, as one compiled program.

The program begins or goes on, takes some steps, and measures. It is compiled once: how
many steps, and whether they are the first, it is told when it runs. Runs that do not
fit in memory together take turns; the same program serves every part of them.
"""

import warnings
from collections.abc import Callable
from functools import cached_property
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, PartitionSpec as P

from ._arrays import Shelf
from ._devices import devices_for
from ._memory import runs_that_fit
from ._model import Model
from ._parts import Part, Parts
from ._plan import Plan
from ._trace import Traced

Saved = list[np.ndarray]  # of bytes: what the runs go on with
Runs = list[Any]  # for each part, the arrays that its runs go on with


class Program:
    """Every learning rate from every seed, side by side, on all devices there are.

    Args:
        model: one run, as functions of a learning rate and a seed; or traced already.
        plan: the learning rates and the seeds.
        at_once: how many runs may be in memory at once; by default as many as fit.
        shelf: where the race has its data on the devices.
    """

    def __init__(
        self,
        model: Model | Traced,
        plan: Plan,
        at_once: int | None = None,
        shelf: Shelf | None = None,
    ) -> None:
        self.traced = model if isinstance(model, Traced) else Traced(model)
        self.model, self.plan = self.traced.model, plan
        self._forced, self._shelf = at_once is not None, shelf or Shelf()
        rates, seeds = len(plan.rates), len(plan.seeds)
        devices = devices_for(rates)
        every = rates * seeds
        self._parts = Parts.of(seeds, rates, at_once or every, len(devices))
        self._mesh = Mesh(np.array(devices[: self._parts.devices]), ("rates",))
        known = [np.nan if rate is None else rate for rate in plan.rates]
        self._rates = np.array(known, np.float32)
        self._seeds = np.array(plan.seeds, np.uint32)

    def with_at_once(self, at_once: int) -> "Program":
        """The same runs, fewer of them in memory at once.

        Args:
            at_once: how many.
        """
        program = Program(self.traced, self.plan, at_once, self._shelf)
        program._forced = self._forced
        return program

    def fitted(self) -> "Program":
        """The program, compiled, with as many runs at once as fit in memory."""
        program = self
        while not self._forced and (most := runs_that_fit(program)) < program.at_once:
            program = program.with_at_once(most)
        _ = program.compiled
        return program

    @cached_property
    def lowered(self) -> Any:
        """The program, traced."""
        part = self._parts.parts[0]
        arguments = self._arguments(part, self._empty(part), 0, 0, True)
        return jax.jit(self._program(), donate_argnums=2).lower(*arguments)

    @cached_property
    def compiled(self) -> Callable[..., Any]:
        """The program, ready to run."""
        return self.lowered.compile()

    @property
    def at_once(self) -> int:
        """How many runs are in memory at once."""
        return self._parts.at_once

    @property
    def split(self) -> bool:
        """Whether the runs take turns."""
        return len(self._parts.parts) > 1

    @property
    def devices(self) -> list[Any]:
        """What it runs on."""
        return list(self._mesh.devices.flat)

    def empty(self) -> Runs:
        """Memory for the runs."""
        return [self._empty(part) for part in self._parts.parts]

    def go_on(self, runs: Runs, start: int, count: int, fresh: bool = False) -> Any:
        """Take some steps: the runs after them, and what is to be seen.

        That is (3, rates, seeds): the first step's loss, the mean loss, the metric.

        Args:
            runs: what they go on with; it is given up.
            start: how many steps were taken.
            count: how many to take.
            fresh: whether to begin, whatever `runs` are.
        """
        told = np.empty((3, len(self.plan.rates), len(self.plan.seeds)))
        for k, part in enumerate(self._parts.parts):
            arguments = self._arguments(part, runs[k], start, count, fresh)
            runs[k] = None  # so that nothing holds what is given up
            with warnings.catch_warnings():
                # Arrays from the host cannot be donated, those from a device are.
                warnings.filterwarnings("ignore", "Some donated buffers")
                after, found = jax.block_until_ready(self.compiled(*arguments))
            # What waits for its turn must not fill the memory of an accelerator.
            away = self.split and self.devices[0].platform != "cpu"
            runs[k] = jax.device_get(after) if away else after
            found = np.stack([np.asarray(x, np.float64).T for x in found])
            told[:, part.rates[:, None], part.seeds[None]] = found
        return runs, told

    def save(self, runs: Runs) -> Saved:
        """What the runs go on with, in one order however they were divided.

        Args:
            runs: as `go_on` returns them.
        """
        whole = [np.empty(shape, x.dtype) for shape, x in self._shapes()]
        for part, arrays in zip(self._parts.parts, runs, strict=True):
            for x, some in zip(whole, arrays, strict=True):
                x[part.seeds[:, None], part.rates[None]] = jax.device_get(some)
        return [x.reshape(-1).view(np.uint8) for x in whole]

    def load(self, saved: Saved) -> Runs:
        """The runs that were saved.

        Args:
            saved: by a program of the same code, data and plan.
        """
        rows = zip(saved, self._shapes(), strict=True)
        whole = [
            np.frombuffer(x, like.dtype).reshape(shape) for x, (shape, like) in rows
        ]
        return [
            [x[part.seeds[:, None], part.rates[None]] for x in whole]
            for part in self._parts.parts
        ]

    def _shapes(self) -> list[tuple[tuple[int, ...], Any]]:
        """Of all runs together."""
        lead = len(self._seeds), len(self._rates)
        return [((*lead, *x.shape), x) for x in self.traced.one]

    def _empty(self, part: Part) -> list[Any]:
        lead = len(part.seeds), len(part.rates)
        return [np.zeros((*lead, *x.shape), x.dtype) for x in self.traced.one]

    def _arguments(
        self, part: Part, runs: Any, start: int, count: int, fresh: bool
    ) -> Any:
        rates, seeds = self._rates[part.rates], self._seeds[part.seeds]
        numbers = np.int32(start), np.int32(count), np.bool_(fresh)
        return rates, seeds, runs, *numbers, self._arrays

    @cached_property
    def _arrays(self) -> list[Any]:
        """What all runs read, on the devices."""
        return self._shelf.place(self.traced.arrays, self._mesh)

    def _program(self) -> Callable[..., Any]:
        every_rate = 0, None, 0, None, None, None, None
        every_seed = None, 0, 0, None, None, None, None
        over_rates = jax.vmap(self.traced.some_steps, every_rate)
        both = jax.vmap(over_rates, every_seed)
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
