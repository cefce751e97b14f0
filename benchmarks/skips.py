"""The cost of a step that may be skipped: `python -m benchmarks.skips [SIZE [LEAVES]]`.

Four ways to keep AdamW's old state, in one compiled step with donated buffers:
`selected`, which selects where each result is computed; a selection after the step; a
branch, as in Optax; and AdamW alone. Shows the best of several rounds, in turns: a row
for each dtype of the params, and one for a first moment in bfloat16.
"""

import sys
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import optax

import steepest
from steepest.engine import selected, when, zeros
from steepest.numerics import computed_once

from . import machine
from .timing import clock, race

ROUNDS = 8


def chosen_after(name: str, apply: Any, tx: Any, updates: Any, state: Any, *rest: Any):
    """Select between old and new at the end of the step."""
    params, extra = rest
    apply = computed_once(apply)
    out, new = tx.update(updates, state, params, **extra)
    choose = lambda new, old: jnp.where(apply, new, old)
    return jax.tree.map(choose, out, zeros(out)), jax.tree.map(choose, new, state)


def branch(name: str, apply: Any, tx: Any, *args: Any) -> Any:
    """Step and skip in a `jax.lax.cond`."""
    return when(name, apply, tx, zeros, *args)


def skipping(hold: Callable[..., Any], tx: Any) -> Callable[..., Any]:
    """A step that is skipped if the first element of the first leaf is NaN."""

    def step(params: Any, state: Any, grads: Any) -> Any:
        apply = jnp.isfinite(jax.tree.leaves(grads)[0][0])
        updates, state = hold("benchmark", apply, tx, grads, state, params, {})
        return steepest.apply_updates(params, updates), state

    return step


def compiled(step: Callable[..., Any], init: Any, params: Any) -> tuple[Any, float]:
    """One turn of the race, and the megabytes it needs besides its arguments."""
    args = [jax.tree.map(jnp.copy, params), init(params)]
    grads = jax.tree.map(lambda x: 0.1 * x, params)
    run = jax.jit(step, donate_argnums=(0, 1)).lower(*args, grads).compile()

    def turn() -> dict[str, float]:
        spent, args[:] = clock(run, *args, grads)
        return {"step": spent}

    return turn, run.memory_analysis().temp_size_in_bytes / 1e6


def main() -> None:
    """Print a row for each way and dtype."""
    size, leaves = [*map(int, sys.argv[1:]), 4_000_000, 10][:2]
    print(", ".join(machine.describe().values()), f"{leaves} leaves of {size}")
    print(
        f"{'':24}{'selected':>16}{'after':>16}{'branch':>16}{'Optax':>16}{'alone':>16}"
    )
    for label, dtype, mu in (
        ("float32", jnp.float32, None),
        ("bfloat16", jnp.bfloat16, None),
        ("float32, mu bfloat16", jnp.float32, jnp.bfloat16),
    ):
        params = {f"w{i}": jnp.ones((size,), dtype) for i in range(leaves)}
        tx = steepest.adamw(1e-3, mu_dtype=mu)
        peer = optax.apply_if_finite(optax.adamw(1e-3, mu_dtype=mu), 3)
        ways = (selected, chosen_after, branch)
        steps = [(skipping(way, tx), tx.init) for way in ways]
        steps += [(_plain(peer), peer.init), (_plain(tx), tx.init)]
        rows = [compiled(step, init, params) for step, init in steps]
        turns = {str(k): turn for k, (turn, _) in enumerate(rows)}
        times = race(turns, ROUNDS)["step"]
        cells = [
            f"{min(times[str(k)]) * 1e3:.0f} ms, {extra:.0f} MB"
            for k, (_, extra) in enumerate(rows)
        ]
        print(f"{label:24}" + "".join(f"{cell:>16}" for cell in cells))


def _plain(tx: Any) -> Callable[..., Any]:
    def step(params: Any, state: Any, grads: Any) -> Any:
        updates, state = tx.update(grads, state, params)
        return steepest.apply_updates(params, updates), state

    return step


if __name__ == "__main__":
    main()
