"""Training with memory in few bits: `python -m benchmarks.low_bits [NAME ...]`.

The byte model of the race is trained with each optimizer and each storage of its
memory. All start from the same params and see the same batches, so the differences to
float32 are paired: their mean over the seeds, and its standard error.
"""

import argparse
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import steepest
from steepest.race.problems import load

from . import machine

# name -> the optimizer, at a good learning rate for this model
OPTIMIZERS: dict[str, Callable[[Any], Any]] = {
    "adamw": lambda kind: steepest.adamw(3e-3, memory_dtype=kind),
    "lion": lambda kind: steepest.lion(1e-3, memory_dtype=kind),
    "muon": lambda kind: steepest.muon(1e-2, memory_dtype=kind),
}


def final_bits(tx: Any, seeds: int, steps: int) -> np.ndarray:
    """Bits per held-out byte at the end, for each seed.

    Args:
        tx: the optimizer.
        seeds: the number of runs, all in one program.
        steps: the number of steps of each.
    """
    problem = load("bytes")
    assert problem.metric is not None
    data = jax.tree.map(jnp.asarray, problem.data)

    def step(carry: Any, key: Any) -> Any:
        params, state = carry
        grads = jax.grad(problem.loss)(params, problem.batches(key, data))
        updates, state = tx.update(grads, state, params)
        return (steepest.apply_updates(params, updates), state), None

    def run(key: Any) -> Any:
        first, second = jax.random.split(key)
        params = problem.init(first)
        keys = jax.random.split(second, steps)
        (params, _), _ = jax.lax.scan(step, (params, tx.init(params)), keys)
        return problem.metric(params, data)

    return np.asarray(
        jax.jit(jax.vmap(run))(jax.random.split(jax.random.key(0), seeds))
    )


def main() -> None:
    """Train, and print a line for each optimizer and storage."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help=f"of {', '.join(OPTIMIZERS)}")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=800)
    parser.add_argument("--kinds", default="int8,float8,int4")
    chosen = parser.parse_args()
    print(machine.describe())
    print(f"byte model, {chosen.steps} steps, {chosen.seeds} seeds: bits per byte")
    for name in chosen.names or OPTIMIZERS:
        wide = final_bits(OPTIMIZERS[name](None), chosen.seeds, chosen.steps)
        spread = wide.std(ddof=1)
        print(f"  {name:6} float32  {wide.mean():.4f}, standard deviation {spread:.4f}")
        for kind in chosen.kinds.split(","):
            few = final_bits(OPTIMIZERS[name](kind), chosen.seeds, chosen.steps)
            apart = few - wide
            error = apart.std(ddof=1) / len(apart) ** 0.5
            print(f"  {name:6} {kind:8} {apart.mean():+.4f} ({error:.4f})", flush=True)


if __name__ == "__main__":
    main()
