"""The measurements: what a deep tree costs in Python, and a wide one in memory."""

from collections.abc import Iterator
from functools import partial
from types import ModuleType
from typing import Any

import jax
import jax.numpy as jnp

import steepest

from .optimizers import fresh_rates, LIBRARIES, RATE, Recipe
from .rows import Row, Traffic
from .timing import clock, race, Times
from .trees import GPT


class Deep:
    """Many small leaves: tracing, lowering, compiling, and running without `jit`."""

    def __init__(self, model: GPT):
        self.model = model
        self.params, self.grads = model.fill(0, 0.02), model.fill(1, 0.001)
        self.rates = fresh_rates()

    def rows(
        self, name: str, recipe: Recipe, repeats: int, compiles: int
    ) -> Iterator[Row]:
        """All rows of one optimizer; compiling takes seconds, and has its own count."""
        self._check_that_they_agree(name, recipe)
        inits = {who: recipe(lib, RATE).init for who, lib in LIBRARIES.items()}
        states = {who: init(self.params) for who, init in inits.items()}

        def rows(turn: Any, *args: int) -> Iterator[Row]:
            turns = {
                who: partial(turn, lib, recipe, states[who])
                for who, lib in LIBRARIES.items()
            }
            return _rows(self.model.name, name, race(turns, *args))

        yield from rows(self._eager, repeats)
        yield from rows(self._build, repeats)
        yield from rows(self._compile, compiles, 0)

    def _build(self, lib: ModuleType, recipe: Recipe, state: Any) -> dict[str, float]:
        """Trace and lower as in a new process, then trace an equal transformation."""
        jax.clear_caches()
        rate, args = next(self.rates), (self.params, state, self.grads)
        tracing, traced = clock(jax.jit(_step(lib, recipe(lib, rate))).trace, *args)
        lowering, _ = clock(traced.lower)
        again, _ = clock(jax.jit(_step(lib, recipe(lib, rate))).trace, *args)
        return {"trace": tracing, "lower": lowering, "trace again": again}

    def _compile(self, lib: ModuleType, recipe: Recipe, state: Any) -> dict[str, float]:
        fun = jax.jit(_step(lib, recipe(lib, next(self.rates))))
        compiling, _ = clock(fun.lower(self.params, state, self.grads).compile)
        return {"compile": compiling}

    def _eager(self, lib: ModuleType, recipe: Recipe, state: Any) -> dict[str, float]:
        tx = recipe(lib, RATE)
        updating, _ = clock(tx.update, self.grads, state, self.params)
        stepping, _ = clock(_step(lib, tx), self.params, state, self.grads)
        return {"eager update": updating, "eager step": stepping}

    def _check_that_they_agree(self, name: str, recipe: Recipe) -> None:
        """Refuse to race two different computations."""
        ours, theirs = (
            _step(lib, tx)(self.params, tx.init(self.params), self.grads)
            for lib, tx in ((lib, recipe(lib, RATE)) for lib in LIBRARIES.values())
        )
        pairs = zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True)
        if not all(jnp.allclose(a, b, rtol=1e-4, atol=1e-7) for a, b in pairs):
            raise RuntimeError(
                f"benchmarks: a step of {name} is not the same in steepest and in "
                "Optax, and only equal steps are compared. Run the tests."
            )


class Wide:
    """Many parameters: the compiled step, the memory it takes and how fast it is."""

    def __init__(self, model: GPT):
        self.model = model
        self.params, self.grads = model.fill(0, 0.02), model.fill(1, 0.001)

    def rows(
        self, name: str, recipe: Recipe, repeats: int
    ) -> tuple[list[Row], Traffic]:
        """All rows of one optimizer, and its traffic."""
        txs = {who: recipe(lib, RATE) for who, lib in LIBRARIES.items()}
        steps: dict[str, Any] = {
            "steepest": steepest.make_step(txs["steepest"]),
            "optax": jax.jit(
                _step(LIBRARIES["optax"], txs["optax"]), donate_argnums=(0, 1)
            ),
        }
        turns, temporary, kept = {}, {}, {}
        for who, step in steps.items():
            params = jax.tree.map(jnp.copy, self.params)  # donated, so one for each
            state = txs[who].init(params)
            compiled = step.lower(params, state, self.grads).compile()
            temporary[who] = [compiled.memory_analysis().temp_size_in_bytes]
            kept[who] = [_bytes(state)]
            turns[who] = _stepping(step, self.grads, params, state)

        plain = jax.jit(_step(LIBRARIES["optax"], txs["optax"]))
        turns["undonated"] = _stepping(
            plain, self.grads, self.params, txs["optax"].init(self.params)
        )
        ones = jnp.ones(_size(self.grads))
        add = jax.jit(lambda a, b: (a + b,), donate_argnums=0)
        turns["copy"] = _stepping(add, ones, jnp.zeros_like(ones))

        times = race(turns, repeats, warmups=2)
        row = partial(Row, self.model.name, name)
        undonated = times.pop("undonated")["step"]
        rows = [
            *_rows(self.model.name, name, times),
            row("step, undonated", "s", times["steepest"]["step"], undonated),
            row("bytes of state", "B", kept["steepest"], kept["optax"]),
            row("temporary bytes", "B", temporary["steepest"], temporary["optax"]),
        ]
        # Read: params, grads and state. Written: params and state.
        moved = 3 * _bytes(self.grads) + 2 * min(min(x) for x in kept.values())
        best = {who: min(mine["step"]) for who, mine in times.items()}
        return rows, Traffic(name, moved, 3 * _bytes(ones), **best)


def _step(lib: ModuleType, tx: Any) -> Any:
    """Update and apply, as a new function."""

    def step(params: Any, state: Any, grads: Any) -> tuple[Any, Any]:
        updates, state = tx.update(grads, state, params)
        return lib.apply_updates(params, updates), state

    return step


def _stepping(step: Any, grads: Any, *given: Any) -> Any:
    """A turn that takes one step further; what it was given is given up."""
    kept = list(given)

    def turn() -> dict[str, float]:
        seconds, kept[:] = clock(step, *kept, grads)
        return {"step": seconds}

    return turn


def _rows(tree: str, optimizer: str, times: dict[str, Times]) -> Iterator[Row]:
    """A row for every quantity that was clocked."""
    for quantity, ours in times["steepest"].items():
        yield Row(tree, optimizer, quantity, "s", ours, times["optax"][quantity])


def _size(tree: Any) -> int:
    return sum(leaf.size for leaf in jax.tree.leaves(tree))


def _bytes(tree: Any) -> int:
    return sum(leaf.nbytes for leaf in jax.tree.leaves(tree))
