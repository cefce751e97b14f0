"""The state in host memory: `python -m benchmarks.gpu offload [--quick]`.

AdamW with and without `offload`, in float32 and with its memory in 8 bits, and Optax's,
with the same copies written by hand. Every contender runs in a process of its own: the
peak memory of a process cannot be reset. The columns:

step: the time of one of several steps in a row.
peak: the most memory of the device in use at once, with params, gradients and state.
rest: the memory of the device in use between two steps.
temporary: what XLA plans to allocate in a step, in addition to its arguments.
init: the peak of `steepest.init`, with only the params before it.

On a CPU, where JAX does not count, peak, rest and init are the sizes that XLA plans or
the arrays have. They are there to test the script.
"""

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import jax
import jax.numpy as jnp
import numpy as np
import optax

import steepest

from . import processes
from .measure import stepping
from .optimizers import donated, RATE
from .rows import OURS, Row
from .table import amount, markdown
from .timing import clock
from .trees import TINY, Tree, TREES

ROUNDS, ROW = 4, 5  # rounds of five steps in a row
LONGEST = 600  # seconds for one process
QUANTITIES = {"step": "s", "peak": "B", "rest": "B", "temporary": "B", "init": "B"}
HOST, DEVICE = jax.memory.Space.Host, jax.memory.Space.Device


def _adamw(memory_dtype: Any = None, *, offloaded: bool) -> Any:
    tx = steepest.adamw(RATE, memory_dtype=memory_dtype)
    return steepest.offload(tx) if offloaded else tx


def _by_hand(tx: Any) -> Any:
    """An optimizer of Optax, with its state in host memory between steps."""

    def move(state: Any, to: Any) -> Any:
        put = lambda x: jax.device_put(x, to) if x.ndim else x
        return jax.tree.map(put, state)

    def update(grads: Any, state: Any, params: Any) -> Any:
        updates, state = tx.update(grads, move(state, DEVICE), params)
        return updates, move(state, HOST)

    return optax.GradientTransformation(lambda p: move(tx.init(p), HOST), update)


# Optimizer -> contender -> the transformation.
CASES: dict[str, dict[str, Callable[[], Any]]] = {
    "plain adamw": {
        "steepest": partial(_adamw, offloaded=False),
        "optax": lambda: optax.adamw(RATE),
    },
    "offloaded adamw": {
        "steepest": partial(_adamw, offloaded=True),
        "optax": lambda: _by_hand(optax.adamw(RATE)),
    },
    "plain adamw, int8": {"steepest": partial(_adamw, "int8", offloaded=False)},
    "offloaded adamw, int8": {"steepest": partial(_adamw, "int8", offloaded=True)},
}


def of_host_memory(tree: Tree, torch: Any, quick: bool = False) -> Iterator[Row]:
    """Every case, each in its own process; a case that fails is left out.

    Args:
        tree: the params.
        torch: not used; torch has no such option.
        quick: whether the tree is the tiny one of that name.
    """
    del torch
    lines = []
    for optimizer, contenders in CASES.items():
        numbers: dict[str, dict[str, list[float]]] = {}
        for who in contenders:
            for mode in ("steps", "init"):
                found = _measured(optimizer, who, mode, tree.name, quick)
                for quantity, xs in found.items():
                    numbers.setdefault(quantity, {})[who] = xs
            mine = {k: xs[who] for k, xs in numbers.items() if who in xs}
            shown = {k: amount(min(xs), QUANTITIES[k]) for k, xs in mine.items()}
            lines.append([optimizer, who, *(shown.get(k, "") for k in QUANTITIES)])
        for quantity, times in numbers.items():
            if OURS in times:
                unit = QUANTITIES[quantity]
                yield Row("offload", tree.name, optimizer, quantity, unit, times)
    print(markdown(["optimizer", "what", *QUANTITIES], lines), flush=True)


def _measured(
    optimizer: str, who: str, mode: str, tree: str, quick: bool
) -> processes.Numbers:
    """The numbers from a process of its own."""
    options = ["--quick"] if quick else []
    case = (optimizer, who, mode)
    return processes.measured(
        "benchmarks.offload", case, tree, *options, longest=LONGEST
    )


def steps(who: str, tx: Any, tree: Tree) -> dict[str, list[float]]:
    """The numbers of some steps."""
    params, grads = filled(tree, 0.02), filled(tree, 0.001)
    state = zeros(tx, params)
    step = donated(who, tx)
    seconds, compiled = clock(step.lower(params, state, grads).compile)
    print(f"compiled in {seconds:.1f} s", file=sys.stderr)
    memory = compiled.memory_analysis()
    planned = memory.argument_size_in_bytes + memory.temp_size_in_bytes
    del compiled
    turn = stepping(lambda p, s: step(p, s, grads), params, state, times=ROW)
    del params, state  # donated
    turn()
    times = [turn()["step"] for _ in range(ROUNDS)]
    most, rest = processes.memory(planned, planned)
    temporary = memory.temp_size_in_bytes
    return {"step": times, "peak": [most], "rest": [rest], "temporary": [temporary]}


def init(who: str, tx: Any, tree: Tree) -> dict[str, list[float]]:
    """The peak of making the state."""
    params = filled(tree, 0.02)
    state = steepest.init(tx, params) if who == OURS else tx.init(params)
    size = processes.nbytes(jax.block_until_ready((params, state)))
    return {"init": [processes.memory(size, size)[0]]}


def filled(tree: Tree, value: float) -> Any:
    """The same number everywhere: random ones would need memory to be drawn."""
    full = lambda x: jnp.full(x.shape, value, x.dtype)
    return jax.block_until_ready(jax.tree.map(full, tree.shapes))


def zeros(tx: Any, params: Any) -> Any:
    """A state of zeros, sent to its memory from NumPy.

    So the peak is that of the steps: nothing else is on the device before. If JAX
    cannot send NumPy arrays to that memory, the state is made on the device.
    """
    shapes = jax.eval_shape(tx.init, params)
    where = steepest.shardings(tx, params)
    empty = jax.tree.map(lambda x: np.zeros(x.shape, x.dtype), shapes)
    try:
        return jax.block_until_ready(steepest.place(empty, where))
    except jax.errors.JaxRuntimeError as error:
        print(f"the state is made on the device: {error}", file=sys.stderr)
        return jax.block_until_ready(jax.jit(tx.init, out_shardings=where)(params))


def main() -> None:
    """Print the numbers of one case."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.offload")
    parser.add_argument("optimizer", choices=CASES)
    parser.add_argument("who")
    parser.add_argument("mode", choices=("steps", "init"))
    parser.add_argument("tree", choices=TREES)
    parser.add_argument("--quick", action="store_true")
    args = parser.parse_args()
    tree = (TINY if args.quick else TREES)[args.tree]
    tx = CASES[args.optimizer][args.who]()
    with tempfile.TemporaryDirectory() as cache:  # the step is compiled twice
        jax.config.update("jax_compilation_cache_dir", cache)
        measure = steps if args.mode == "steps" else init
        print(json.dumps(measure(args.who, tx, tree)))


if __name__ == "__main__":
    main()
