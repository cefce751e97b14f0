"""Memory in few bits: `python -m benchmarks.memory [--side N] [--leaves N]`.

A step of AdamW and Lion on square matrices, by default of 1.07 billion params: the time
of one of several steps in a row, the time of the device alone, the bytes per param of
weights and state, and what XLA needs for intermediate results. Optax's AdamW in float32
is there to compare with.
"""

import argparse
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import optax

import steepest

from . import machine
from .matrix import device_seconds
from .timing import clock

RATE = 1e-3
ROUNDS, ROW = 4, 5  # rounds of five steps in a row

adamw = lambda kind: steepest.adamw(RATE, memory_dtype=kind)
# name -> the optimizer, and the dtype of params and gradients
CASES: dict[str, tuple[Callable[[], Any], str]] = {
    "adamw of Optax": (lambda: optax.adamw(RATE), "float32"),
    "adamw": (lambda: adamw(None), "float32"),
    "adamw int8": (lambda: adamw("int8"), "float32"),
    "adamw float8": (lambda: adamw("float8"), "float32"),
    "adamw int4": (lambda: adamw("int4"), "float32"),
    "adamw int8, 24-bit weights": (
        lambda: steepest.compensated(adamw("int8"), bits=8),
        "bfloat16",
    ),
    "adamw int8, 32-bit weights": (
        lambda: steepest.compensated(adamw("int8")),
        "bfloat16",
    ),
    "adamw int8, stochastic rounding": (
        lambda: steepest.stochastic_rounding(adamw("int8"), 0),
        "bfloat16",
    ),
    "lion": (lambda: steepest.lion(RATE), "float32"),
    "lion int8": (lambda: steepest.lion(RATE, memory_dtype="int8"), "float32"),
}


def measured(tx: Any, dtype: str, side: int, leaves: int) -> str:
    """A line about one optimizer.

    Args:
        tx: the optimizer.
        dtype: the dtype of params and gradients.
        side: rows and columns of each matrix.
        leaves: the number of matrices.
    """
    keys = jax.random.split(jax.random.key(0), leaves)
    draw = lambda key: (0.01 * jax.random.normal(key, (side, side))).astype(dtype)
    grads = [draw(key) for key in keys]
    params = [jnp.full((side, side), 0.01, dtype) for _ in keys]
    state = jax.jit(tx.init)(params)

    def step(params: Any, state: Any, grads: Any) -> Any:
        updates, state = tx.update(grads, state, params)
        return steepest.apply_updates(params, updates), state

    lowered = jax.jit(step, donate_argnums=(0, 1)).lower(params, state, grads)
    compiled = lowered.compile()
    kept = [params, state]
    del params, state

    def row() -> None:
        for _ in range(ROW):
            kept[:] = compiled(*kept, grads)
        jax.block_until_ready(kept)

    row()
    best = min(clock(row)[0] for _ in range(ROUNDS)) / ROW
    device = device_seconds(row, 1)
    size = side * side * leaves
    per_param = lambda tree: sum(x.nbytes for x in jax.tree.leaves(tree)) / size
    text = f"{1e3 * best:.2f} ms"
    if device is not None:
        text += f", {1e3 * device / ROW:.2f} on the device"
    temporary = compiled.memory_analysis().temp_size_in_bytes
    return (
        f"{text}, weights {per_param(kept[0]):.2f} and state {per_param(kept[1]):.3f} "
        f"bytes per param, {temporary / size:.2f} temporary"
    )


def main() -> None:
    """Print a line for each optimizer."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.memory")
    parser.add_argument("--side", type=int, default=8192)
    parser.add_argument("--leaves", type=int, default=16)
    args = parser.parse_args()
    print(machine.describe())
    for name, (make, dtype) in CASES.items():
        line = measured(make(), dtype, args.side, args.leaves)
        print(f"{name}: {line}", flush=True)


if __name__ == "__main__":
    main()
