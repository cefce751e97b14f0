"""All runs of one optimizer, as one compiled program.

The program starts or continues the runs, takes some steps and evaluates them. It is
compiled once: the number of steps, and whether to start, are arguments. Runs that do
not fit in memory together take turns, with the same program.
"""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, PartitionSpec as P
from jaxtyping import Array, PyTree

from ._arrays import Shelf
from ._devices import devices_for, group_size
from ._memory import runs_that_fit
from ._model import Model
from ._parts import RunPart, RunParts
from ._plan import RunPlan
from ._trace import Traced

Saved = list[np.ndarray]  # params and states of all runs, as bytes
Runs = list[PyTree]  # for each part, the arrays in the params and states of its runs


class Program:
    """Every learning rate with every seed, vectorised over all devices.

    Args:
        model: one run, as functions of a learning rate and a seed; or its trace.
        plan: the learning rates and the seeds.
        at_once: maximum number of runs in memory at once; by default as many as fit.
        shelf: the cache of the race's data on the devices.
        group: number of learning rates that run together, if there is memory for them;
            by default all, or fewer with halving, so that fewer runs take fewer turns.
    """

    def __init__(
        self,
        model: Model | Traced,
        plan: RunPlan,
        at_once: int | None = None,
        shelf: Shelf | None = None,
        group: int | None = None,
    ) -> None:
        self.traced = model if isinstance(model, Traced) else Traced(model)
        self.model, self.plan = self.traced.model, plan
        self._forced, self._shelf = at_once is not None, shelf or Shelf()
        rates, seeds = len(plan.rates), len(plan.seeds)
        devices = devices_for(group or rates)
        self._group = group or (group_size(devices, rates) if plan.halving else rates)
        self._whole = seeds * self._group
        most = at_once or self._whole
        self._parts = RunParts.of(seeds, rates, most, len(devices), self._group)
        self._mesh = Mesh(np.array(devices[: self._parts.devices]), ("rates",))
        known = [np.nan if rate is None else rate for rate in plan.rates]
        self._rates = np.array(known, np.float32)
        self._seeds = np.array(plan.seeds, np.uint32)

    def with_at_once(self, at_once: int) -> "Program":
        """The same program, with another number of runs in memory at once.

        Args:
            at_once: maximum number of runs.
        """
        program = Program(self.traced, self.plan, at_once, self._shelf, self._group)
        program._forced = self._forced
        return program

    def only(self, places: Sequence[int]) -> "Program":
        """The same program for some of its learning rates, without compiling it again.

        Args:
            places: indices of the learning rates.
        """
        plan = replace(self.plan, rates=tuple(self.plan.rates[k] for k in places))
        program = Program(self.traced, plan, self.at_once, self._shelf, self._group)
        program._forced = self._forced
        program.__dict__["compiled"] = self.compiled  # all parts have the same shape
        return program

    def fitted(self) -> "Program":
        """The compiled program, with as many runs at once as fit in memory."""
        program = self
        while not self._forced and (most := runs_that_fit(program)) < program.at_once:
            program = program.with_at_once(most)
        _ = program.compiled
        return program

    @cached_property
    def lowered(self) -> jax.stages.Lowered:
        """The lowered program."""
        part = self._parts.parts[0]
        arguments = self._arguments(part, self._empty(part), 0, 0, True)
        return jax.jit(self._program(), donate_argnums=2).lower(*arguments)

    @cached_property
    def compiled(self) -> jax.stages.Compiled:
        """The compiled program."""
        return self.lowered.compile()

    @property
    def at_once(self) -> int:
        """The number of runs in memory at once."""
        return self._parts.at_once

    @property
    def computed(self) -> int:
        """The number of runs that it computes, with those that fill up the parts."""
        return self.at_once * len(self._parts.parts)

    @property
    def limited(self) -> bool:
        """Whether memory, or the user, has limited the number of runs at once."""
        return self.at_once < self._whole

    @property
    def split(self) -> bool:
        """Whether the runs take turns."""
        return len(self._parts.parts) > 1

    @property
    def devices(self) -> list[Any]:
        """The devices it runs on."""
        return list(self._mesh.devices.flat)

    def empty(self) -> Runs:
        """Zeros in the shape of the runs."""
        return [self._empty(part) for part in self._parts.parts]

    def go_on(
        self, runs: Runs, start: int, count: int, fresh: bool = False
    ) -> tuple[Runs, np.ndarray]:
        """Take some steps. Returns the runs, and the values of the evaluation.

        The values are (3, rates, seeds): the first step's loss, the mean loss and the
        metric.

        Args:
            runs: params and states of the runs, which are donated.
            start: number of steps taken so far.
            count: number of steps to take.
            fresh: whether to initialise the runs and ignore `runs`.
        """
        values = np.empty((3, len(self.plan.rates), len(self.plan.seeds)))
        for k, part in enumerate(self._parts.parts):
            arguments = self._arguments(part, runs[k], start, count, fresh)
            runs[k] = None  # drop the reference to the donated buffers
            with warnings.catch_warnings():
                # Host arrays cannot be donated, device arrays can.
                warnings.filterwarnings("ignore", "Some donated buffers")
                after, some = jax.block_until_ready(self.compiled(*arguments))
            # Waiting runs must not fill the memory of an accelerator.
            away = self.split and self.devices[0].platform != "cpu"
            runs[k] = jax.device_get(after) if away else after
            some = np.stack([np.asarray(x, np.float64).T for x in some])
            values[:, part.rates[:, None], part.seeds[None]] = some
        return runs, values

    def save(self, runs: Runs) -> Saved:
        """The params and states of all runs, independent of the split into parts.

        Args:
            runs: as returned by `go_on`.
        """
        return [x.reshape(-1).view(np.uint8) for x in self._joined(runs)]

    def load(self, saved: Saved) -> Runs:
        """Restore saved runs.

        Args:
            saved: by a program with the same code, data and plan.
        """
        rows = zip(saved, self._shapes(), strict=True)
        return self._divided(
            [np.frombuffer(x, like.dtype).reshape(shape) for x, (shape, like) in rows]
        )

    def picked(self, runs: Runs, places: Sequence[int]) -> "tuple[Program, Runs]":
        """The program and the runs of some learning rates.

        Args:
            runs: as returned by `go_on`.
            places: indices of the learning rates.
        """
        program = self.only(places)
        whole = [x[:, list(places)] for x in self._joined(runs)]
        return program, program._divided(whole)

    def _joined(self, runs: Runs) -> list[np.ndarray]:
        """The arrays of all runs together: (seeds, rates, ...)."""
        whole = [np.empty(shape, x.dtype) for shape, x in self._shapes()]
        for part, arrays in zip(self._parts.parts, runs, strict=True):
            for x, some in zip(whole, arrays, strict=True):
                x[part.seeds[:, None], part.rates[None]] = jax.device_get(some)
        return whole

    def _divided(self, whole: list[np.ndarray]) -> Runs:
        """The inverse of `_joined`."""
        return [
            [x[part.seeds[:, None], part.rates[None]] for x in whole]
            for part in self._parts.parts
        ]

    def _shapes(self) -> list[tuple[tuple[int, ...], jax.ShapeDtypeStruct]]:
        """The shapes of all runs together."""
        lead = len(self._seeds), len(self._rates)
        return [((*lead, *x.shape), x) for x in self.traced.one]

    def _empty(self, part: RunPart) -> list[np.ndarray]:
        lead = len(part.seeds), len(part.rates)
        return [np.zeros((*lead, *x.shape), x.dtype) for x in self.traced.one]

    def _arguments(
        self, part: RunPart, runs: PyTree, start: int, count: int, fresh: bool
    ) -> tuple[PyTree, ...]:
        rates, seeds = self._rates[part.rates], self._seeds[part.seeds]
        numbers = np.int32(start), np.int32(count), np.bool_(fresh)
        return rates, seeds, runs, *numbers, self._arrays

    @cached_property
    def _arrays(self) -> list[Array]:
        """What all runs read, on the devices."""
        return self._shelf.place(self.traced.arrays, self._mesh)

    def _program(self) -> Callable[..., PyTree]:
        every_rate = 0, None, 0, None, None, None, None
        every_seed = None, 0, 0, None, None, None, None
        over_rates = jax.vmap(self.traced.some_steps, every_rate)
        both = jax.vmap(over_rates, every_seed)
        if self._mesh.size == 1:
            return both
        every, rates, runs = P(), P("rates"), P(None, "rates")
        # The runs are independent, so there is no replication to check.
        return jax.shard_map(
            both,
            mesh=self._mesh,
            in_specs=(rates, every, runs, every, every, every, every),
            out_specs=runs,
            check_vma=False,
        )
