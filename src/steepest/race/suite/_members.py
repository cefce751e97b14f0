"""Several runs of one optimizer, from the first step to the last, as one program.

The number of steps is an argument, so all stages of the protocol share one compilation.
The hyperparameters are arrays with one value per run.
"""

import hashlib
import time
from collections.abc import Sequence
from functools import partial
from math import isfinite, log
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

import steepest
from steepest.core import Schedule

from .._content import content, text_of
from .._model import evaluated, Run
from ._arms import Arm, Numbers
from ._size import Size
from ._text import sources, windows
from ._transformer import held_out_nats, init, nats, parts_of, scaled

CURVE = 32  # parts of a run, whose mean training losses are kept
WARM_UP, DECAY = 0.02, 0.5  # parts of a run: rising and falling learning rate
RANDOM = log(256)  # nats of a model that knows nothing

Data = dict[str, Array]


class Member(NamedTuple):
    """One run."""

    rate: float
    decay: float
    seed: int


class Rest(NamedTuple):
    """AdamW's numbers for the leaves that are not matrices."""

    rate: float
    decay: float


class Result(NamedTuple):
    """How some runs ended."""

    nats: list[float]  # of held-out text; infinite for a run that diverged
    curves: list[list[float]]  # mean training losses of the parts of each run
    seconds: float


def data_of(size: Size) -> Data:
    """The text, on the device.

    Args:
        size: of the suite.
    """
    text = sources(size.text)
    held_out = windows(text.held_out, size.windows, size.places)
    return {"train": jnp.asarray(text.train), "test": jnp.asarray(held_out)}


def schedule_of(arm: Arm, rate: Array, steps: Array) -> Schedule:
    """Warm-up, flat, and linear to zero, for any number of steps.

    Args:
        arm: some need no decay.
        rate: the largest learning rate.
        steps: the number of steps.
    """
    warm_up = jnp.ceil(WARM_UP * steps)
    decay = 0 if arm.flat else jnp.ceil(DECAY * steps)
    # The first step of a warm-up from zero would be lost.
    return steepest.wsd(rate, steps, warm_up, decay, rate / warm_up, shape="linear")


def one_run(
    arm: Arm,
    size: Size,
    rate: Array,
    decay: Array,
    seed: Array,
    rest_rate: Array,
    rest_decay: Array,
    steps: Array,
    parts: Array,
    data: Data,
) -> tuple[Array, Array]:
    """Train a model. Returns the nats of held-out text, and the training losses.

    Args:
        arm: the optimizer.
        size: of the suite.
        rate: learning rate.
        decay: weight decay, or a factor on the initial norms of matrices.
        seed: of the params and of the batches.
        rest_rate: learning rate of AdamW for leaves that are not matrices.
        rest_decay: its weight decay.
        steps: number of steps.
        parts: number of parts of the held-out text to measure.
        data: the text.
    """
    tx = arm.make(
        Numbers(
            rate=schedule_of(arm, rate, steps),
            decay=decay,
            rest_rate=schedule_of(arm, rest_rate, steps),
            rest_decay=rest_decay,
            heads=size.heads,
        )
    )
    start, order = jax.random.split(jax.random.key(seed))
    params = init(size, start)
    if arm.keeps_norms:
        params = scaled(params, decay)

    def step(t: Array, now: tuple[Any, Any, Array]) -> tuple[Any, Any, Array]:
        params, state, curve = now
        text = _batch(size, jax.random.fold_in(order, t), data["train"])
        loss, grads = jax.value_and_grad(partial(nats, size))(params, text)
        updates, state = tx.update(grads, state, params)
        params = steepest.apply_updates(params, updates)
        part = jnp.stack([loss, jnp.ones_like(loss)])
        return params, state, curve.at[:, t * CURVE // steps].add(part)

    curve = jnp.zeros((2, CURVE), jnp.float32)
    now = params, tx.init(params), curve
    params, state, curve = jax.lax.fori_loop(0, steps, step, now)
    final = held_out_nats(size, evaluated(Run(params, state)), data["test"], parts)
    return final, curve[0] / curve[1]


def _batch(size: Size, key: Array, text: Array) -> Array:
    # Not `randint`, whose program is twice as long.
    some = jax.random.bits(key, (size.batch,), jnp.uint32)
    starts = (some % jnp.uint32(len(text) - size.places)).astype(jnp.int32)
    return text[starts[:, None] + jnp.arange(size.places + 1)[None, :]]


class Members:
    """The program of one optimizer. It is traced at once, and compiled if asked to.

    Args:
        arm: the optimizer.
        size: of the suite.
        data: the text, on the device.
    """

    def __init__(self, arm: Arm, size: Size, data: Data) -> None:
        self.arm, self._size, self._data = arm, size, data
        began = time.perf_counter()
        axes = 0, 0, 0, *[None] * 5
        # Not over several CPU devices, as in `race`: programs with LAPACK calls inside
        # conditions, as those of SOAP, hang there (JAX 0.10.2).
        every = jax.jit(jax.vmap(partial(one_run, arm, size), axes))
        nobody = [Member(0.0, 0.0, 0)] * size.members
        traced = every.trace(*self._arguments(nobody, Rest(0.0, 0.0), 1, 1))
        sha = hashlib.sha256()
        for item in content(traced.jaxpr):
            sha.update(f"{text_of(item)}\n".encode())
        self.digest = sha.hexdigest()[:32]
        self._traced, self._compiled = traced, None
        self.compile_seconds = time.perf_counter() - began

    def compile(self) -> "Members":
        """Compile the program. Returns itself."""
        began = time.perf_counter()
        if self._compiled is None:
            self._compiled = self._traced.lower().compile()
            self.compile_seconds += time.perf_counter() - began
        return self

    def __call__(
        self,
        members: Sequence[Member],
        rest: Rest,
        steps: int,
        parts: int | None = None,
    ) -> Result:
        """Train some models.

        Args:
            members: at most as many as the program has; it runs the last one again for
                each one that is missing.
            rest: AdamW's numbers for leaves that are not matrices.
            steps: number of steps.
            parts: number of parts of the held-out text to measure; by default all.
        """
        parts = parts_of(self._data["test"]) if parts is None else parts
        missing = self._size.members - len(members)
        all_of_them = [*members, *[members[-1]] * missing]
        compiled = self.compile()._compiled
        assert compiled is not None
        began = time.perf_counter()
        final, curves = jax.block_until_ready(
            compiled(*self._arguments(all_of_them, rest, steps, parts))
        )
        seconds = time.perf_counter() - began
        some = slice(len(members))
        ends = [_measured(float(x)) for x in np.asarray(final)[some]]
        return Result(ends, np.asarray(curves, np.float64)[some].tolist(), seconds)

    def step_seconds(self, few: int, many: int) -> float:
        """The time of one step of all runs.

        Args:
            few: number of steps of a run.
            many: number of steps of a longer run.
        """
        members = [Member(1e-3, 0.0, seed) for seed in range(self._size.members)]
        rest = Rest(1e-3, 0.0)
        first, second = (self(members, rest, n, 1).seconds for n in (few, many))
        return max(second - first, 0.0) / (many - few)

    def _arguments(
        self, members: Sequence[Member], rest: Rest, steps: int, parts: int
    ) -> tuple[Any, ...]:
        rates = np.array([each.rate for each in members], np.float32)
        decays = np.array([each.decay for each in members], np.float32)
        seeds = np.array([each.seed for each in members], np.uint32)
        frozen = np.float32(rest.rate), np.float32(rest.decay)
        lengths = np.int32(steps), np.int32(parts)
        return rates, decays, seeds, *frozen, *lengths, self._data


def state_bytes(arm: Arm, size: Size) -> tuple[int, int]:
    """The bytes of the optimizer's state of one run, and the number of params.

    Args:
        arm: the optimizer.
        size: of the suite.
    """

    def made(rate: Array) -> Any:
        always = lambda count: rate
        params = init(size, jax.random.key(0))
        numbers = Numbers(always, rate, always, rate, size.heads)
        return arm.make(numbers).init(params), params

    state, params = jax.eval_shape(made, jnp.float32(0))
    many = lambda x: sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(x))
    return many(state), sum(leaf.size for leaf in jax.tree.leaves(params))


def _measured(nats: float) -> float:
    """A run that ends worse than it began has diverged."""
    return nats if isfinite(nats) and nats < RANDOM else float("inf")
