"""The measurements, each of one optimizer on one tree.

build: trace and lower update and apply, with all of JAX's caches cleared and a new
    learning rate, as in a new process.
compile: the same program, by XLA.
program: both together.
eager: update, and update and apply, outside `jit`.
step: update and apply, compiled, with params and state donated. Also the bytes of its
    state, of temporary memory and of copies; and its bandwidth, the fewest bytes that
    it can move (params, gradients and state read once, params and state written once)
    divided by its time.
"""

import math
import re
from collections.abc import Callable, Iterator
from functools import partial
from types import ModuleType
from typing import Any

import jax
import jax.numpy as jnp

from .optimizers import donated, fresh_rates, LIBRARIES, RATE, Recipe, step_of
from .rows import COPY, Row
from .timing import clock, race
from .trees import Tree

# Kind of measurement -> its quantities.
QUANTITIES = {
    "build": ("trace", "lower"),
    "compile": ("compile",),
    "program": ("program",),
    "eager": ("eager update", "eager step"),
    "step": ("step", "bandwidth", "state", "temporary", "copied"),
}


class Field:
    """A tree filled with numbers, to measure optimizers on."""

    def __init__(self, tree: Tree):
        self.tree = tree
        self.params, self.grads = tree.fill(0, 0.02), tree.fill(1, 0.001)
        self.rates = fresh_rates()

    def rows(
        self,
        kind: str,
        section: str,
        optimizer: str,
        recipe: Recipe,
        rounds: int,
        seconds: float,
    ) -> Iterator[Row]:
        """All rows of one kind of measurement.

        Args:
            kind: a name in `QUANTITIES`.
            section: the section for the rows.
            optimizer: the name of the recipe there.
            recipe: the optimizer.
            rounds: maximum number of rounds.
            seconds: time limit, applied once a few rounds are done.
        """
        row = partial(Row, section, self.tree.name, optimizer)
        if kind == "step":
            yield from self._step(row, recipe, rounds, seconds)
            return
        turn = {
            "build": self._build,
            "compile": self._compile,
            "program": self._program,
            "eager": self._eager,
        }
        turns = {}
        for who, lib in LIBRARIES.items():
            tx = recipe.make(lib, RATE)
            turns[who] = partial(turn[kind], lib, recipe, tx, tx.init(self.params))
        # Programs that are built anew each time need no warm-up, which would take long.
        warmups = 1 if kind == "eager" else 0
        times = race(turns, rounds, warmups=warmups, seconds=seconds)
        for quantity, spent in times.items():
            yield row(quantity, "s", spent)

    def _build(
        self, lib: ModuleType, recipe: Recipe, tx: Any, state: Any
    ) -> dict[str, float]:
        del tx  # a new one each time
        jax.clear_caches()
        fun = jax.jit(step_of(lib, recipe.make(lib, next(self.rates))))
        tracing, traced = clock(fun.trace, self.params, state, self.grads)
        lowering, _ = clock(traced.lower)
        return {"trace": tracing, "lower": lowering}

    def _compile(
        self, lib: ModuleType, recipe: Recipe, tx: Any, state: Any
    ) -> dict[str, float]:
        del tx
        fun = jax.jit(step_of(lib, recipe.make(lib, next(self.rates))))
        compiling, _ = clock(fun.lower(self.params, state, self.grads).compile)
        return {"compile": compiling}

    def _program(
        self, lib: ModuleType, recipe: Recipe, tx: Any, state: Any
    ) -> dict[str, float]:
        spent = self._build(lib, recipe, tx, state)
        return {
            "program": sum((spent | self._compile(lib, recipe, tx, state)).values())
        }

    def _eager(
        self, lib: ModuleType, recipe: Recipe, tx: Any, state: Any
    ) -> dict[str, float]:
        del recipe
        updating, _ = clock(tx.update, self.grads, state, self.params)
        stepping, _ = clock(step_of(lib, tx), self.params, state, self.grads)
        return {"eager update": updating, "eager step": stepping}

    def _step(
        self, row: Callable[..., Row], recipe: Recipe, rounds: int, seconds: float
    ) -> Iterator[Row]:
        extra = {name: jnp.float32(1) for name in recipe.extra}
        turns, after = {}, {}
        kept, temporary, copied = {}, {}, {}
        for who, lib in LIBRARIES.items():
            tx = recipe.make(lib, RATE)
            step = donated(who, tx)
            params = jax.tree.map(jnp.copy, self.params)  # donated, so each has its own
            # Optax keeps the params themselves in some states, so they cannot be
            # donated.
            state = jax.tree.map(jnp.copy, tx.init(params))
            kept[who] = [_bytes(state)]
            compiled = step.lower(params, state, self.grads, **extra).compile()
            temporary[who] = [compiled.memory_analysis().temp_size_in_bytes]
            copied[who] = [_copied(compiled.as_text())]
            for _ in range(recipe.period):
                params, state = step(params, state, self.grads, **extra)
            after[who] = jax.tree.map(jnp.copy, params)
            turn = partial(_go_on, step, self.grads, extra)
            turns[who] = stepping(turn, params, state, times=recipe.period)
        self._check_that_they_agree(after)

        turns[COPY] = plain_copy(self.tree.params)
        times = race(turns, rounds, warmups=1, seconds=seconds)
        alone = {who: spent for who, spent in times["step"].items() if who != COPY}
        yield row("step", "s", alone)
        if recipe.period == 1:  # otherwise a single step does not need all its state
            once = 3 * _bytes(self.grads)
            least = dict.fromkeys(LIBRARIES, once + 2 * min(kept.values())[0])
            yield row("bandwidth", "B/s", rates(least | {COPY: once}, times["step"]))
        yield row("state", "B", kept)
        yield row("temporary", "B", temporary)
        yield row("copied", "B", copied)

    def _check_that_they_agree(self, after: dict[str, Any]) -> None:
        """Raise an error if the two compute different things."""

        def far(p: Any, ours: Any, theirs: Any) -> Any:
            way = jnp.max(jnp.abs(theirs - p), initial=0.0)
            return jnp.max(jnp.abs(ours - theirs), initial=0.0) > 1e-3 * way + 1e-6

        apart = jax.tree.map(far, self.params, *(after[who] for who in LIBRARIES))
        if any(map(bool, jax.tree.leaves(apart))):
            raise RuntimeError(
                f"benchmarks: a step on {self.tree.name} differs between steepest and "
                "Optax, and only equal steps can be compared. Run the tests."
            )


def stepping(step: Callable[..., Any], *given: Any, times: int = 1) -> Any:
    """A turn that continues from the last one, donating the arrays that it returned.

    Args:
        step: a function from some arrays to the next.
        given: the first arrays.
        times: number of steps per turn; the time is that of one step.
    """
    kept = list(given)

    def steps() -> Any:
        for _ in range(times):
            kept[:] = step(*kept)
        return kept

    def turn() -> dict[str, float]:
        seconds, _ = clock(steps)
        return {"step": seconds / times}

    return turn


def plain_copy(size: int, times: int = 1) -> Any:
    """One turn: `a + b` into `a`, which shows the memory bandwidth of the machine.

    Args:
        size: number of elements.
        times: number of additions per turn; the time is that of one.
    """
    ones = jnp.ones(size)
    add = jax.jit(lambda a, b: (a + b,), donate_argnums=0)
    return stepping(lambda a: add(a, ones), jnp.zeros_like(ones), times=times)


def _go_on(
    step: Callable[..., Any], grads: Any, extra: dict[str, Any], params: Any, state: Any
) -> tuple[Any, Any]:
    return step(params, state, grads, **extra)


def rates(
    moved: dict[str, int], times: dict[str, list[float]]
) -> dict[str, list[float]]:
    """Bytes per second, from the bytes that each contender moves and its times."""
    return {who: [moved[who] / spent for spent in mine] for who, mine in times.items()}


def _bytes(tree: Any) -> int:
    return sum(leaf.nbytes for leaf in jax.tree.leaves(tree))


def _copied(hlo: str) -> int:
    """The bytes of all arrays that a compiled program copies unchanged."""
    total = 0
    for bits, dims in re.findall(r"= [a-z]+(\d+)\[([\d,]*)\]\S* copy\(", hlo):
        total += int(bits) // 8 * math.prod(map(int, filter(None, dims.split(","))))
    return total
