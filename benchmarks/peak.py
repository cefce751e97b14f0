"""The peak memory of training GPT-2 XL: `python -m benchmarks.gpu peak [--quick]`.

One step is forward, loss, backward and update, with params and state donated: 4
sequences of 1024 bytes of Python's standard library, with products in bfloat16. `gpt`
explains how the model saves memory. Every contender runs in a process of its own: the
peak memory of a process cannot be reset. The columns:

peak: the most memory of the device in use at once.
rest: the memory of the device in use between two steps.
weights, state: the bytes of their arrays, which should add up to `rest`.
gradients: the bytes of all gradients.
temporary: what XLA plans to allocate in a step, gradients included.
step: the time of one of several steps in a row.
first loss, loss: in the first step, and the mean of the last few, in nats.

On a CPU, where JAX does not count, peak is what XLA plans, and rest the arrays that are
alive. They are there to test the script.
"""

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib.util import find_spec
from typing import Any

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import jax
import jax.numpy as jnp
import optax

import steepest

from . import gpt, processes, torch_gpt
from .processes import nbytes, Numbers
from .rows import OURS, Row
from .table import amount, markdown
from .timing import clock
from .trees import TINY, Tree, TREES

RATE = 1e-4
SEQUENCES = 4
ROUNDS, ROW = 4, 5  # rounds of five steps in a row, and one more to warm up
LONGEST = 150  # seconds for one process
QUANTITIES = {
    "peak": "B",
    "rest": "B",
    "weights": "B",
    "state": "B",
    "gradients": "B",
    "temporary": "B",
    "compile": "s",
    "step": "s",
    "first loss": "nats",
    "loss": "nats",
}

_adamw = partial(steepest.adamw, RATE)
_muon = partial(steepest.muon, RATE, stacked="^layers/")
# Optimizer -> dtype of the weights, and contender -> the transformation.
CASES: dict[str, tuple[str, dict[str, Callable[[], Any]]]] = {
    "adamw, float32": (
        "float32",
        {"steepest": _adamw, "optax": lambda: optax.adamw(RATE), "torch": lambda: None},
    ),
    "adamw, int8": ("float32", {"steepest": partial(_adamw, memory_dtype="int8")}),
    "adamw, int8, 24-bit weights": (
        "bfloat16",
        {"steepest": lambda: steepest.compensated(_adamw(memory_dtype="int8"), bits=8)},
    ),
    "muon, float32": ("float32", {"steepest": _muon}),
    "muon, int8": ("float32", {"steepest": partial(_muon, memory_dtype="int8")}),
}


def of_training(
    tree: Tree, torch: Any, only: Sequence[str] = (), quick: bool = False
) -> Iterator[Row]:
    """Every case, each in its own process; a case that fails is left out.

    Args:
        tree: the params.
        torch: not used; torch runs in a process of its own, too.
        only: the names of the cases to measure; all if it is empty.
        quick: whether the tree is the tiny one of that name.
    """
    del torch
    lines = []
    options = ["--quick"] if quick else []
    for optimizer, (_, contenders) in CASES.items():
        if only and optimizer not in only:
            continue
        numbers: dict[str, Numbers] = {}
        for who in contenders:
            if who == "torch" and find_spec("torch") is None:
                continue
            case = (optimizer, who)
            found = processes.measured(
                "benchmarks.peak", case, *options, longest=LONGEST
            )
            for quantity, xs in found.items():
                numbers.setdefault(quantity, {})[who] = xs
            shown = {k: amount(min(xs), QUANTITIES[k]) for k, xs in found.items()}
            lines.append([optimizer, who, *(shown.get(k, "") for k in QUANTITIES)])
        for quantity, unit in QUANTITIES.items():
            if OURS in numbers.get(quantity, {}):
                times = numbers[quantity]
                yield Row("peak", tree.name, optimizer, quantity, unit, times)
    print(markdown(["optimizer", "what", *QUANTITIES], lines), flush=True)


def trained(who: str, tx: Any, tree: Tree, dtype: str) -> Numbers:
    """The numbers of some steps, by quantity.

    Args:
        who: whose step: `steepest` or `optax`.
        tx: the optimizer.
        tree: the params.
        dtype: dtype of the weights.
    """
    shapes = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, dtype), tree.shapes)
    # Before the arrays are made: XLA tries kernels on arrays of its own.
    compiling, step = clock(compiled, who, tx, shapes)
    batches = gpt.batches(SEQUENCES, shapes["positions"].shape[0])
    params = gpt.init(shapes, dtype, jax.random.key(0))
    state = jax.block_until_ready(jax.jit(tx.init)(params))
    weights, states = nbytes(params), nbytes(state)
    if who == OURS:
        _check_description(steepest.describe(tx, shapes), weights, states)
    before, _ = processes.memory(0, 0)
    losses: list[Any] = []
    kept = [params, state]
    del params, state

    def steps() -> Any:
        for _ in range(ROW):
            *kept[:], value = step(*kept, next(batches))
            losses.append(value)
        return kept

    clock(steps)
    times = [clock(steps)[0] / ROW for _ in range(ROUNDS)]
    values = [float(value) for value in losses]
    losses.clear()
    most, rest = processes.memory(processes.planned(step), nbytes(jax.live_arrays()))
    if most == before:
        print("the peak is that of init, not of a step", file=sys.stderr)
    return {
        "peak": [most],
        "rest": [rest],
        "weights": [weights],
        "state": [states],
        "gradients": [weights],  # in the dtype of the weights
        "temporary": [step.memory_analysis().temp_size_in_bytes],
        "compile": [compiling],
        "step": times,
        "first loss": [values[0]],
        "loss": [sum(values[-ROW:]) / ROW],
    }


def compiled(who: str, tx: Any, shapes: Any) -> Any:
    """A training step, with cuDNN's attention if it compiles: it stores no scores.

    Args:
        who: whose step: `steepest` or `optax`.
        tx: the optimizer.
        shapes: the params.
    """
    make: Any = steepest.make_train_step if who == OURS else _step_of_optax
    context = shapes["positions"].shape[0]
    tokens = jax.ShapeDtypeStruct((SEQUENCES, context + 1), jnp.int32)
    state = jax.eval_shape(tx.init, shapes)
    program = lambda attention: (
        make(partial(gpt.loss, attention=attention), tx)
        .lower(shapes, state, tokens)
        .compile()
    )
    if jax.default_backend() == "gpu":
        try:
            return program("cudnn")
        except Exception as error:  # whatever a compiler may raise
            print(f"XLA's attention, since: {str(error)[:500]}", file=sys.stderr)
    return program("xla")


def _step_of_optax(loss: Callable[..., Any], tx: Any) -> Any:
    def step(params: Any, state: Any, tokens: Any) -> Any:
        value, grads = jax.value_and_grad(loss)(params, tokens)
        updates, state = tx.update(grads, state, params)
        return optax.apply_updates(params, updates), state, value

    return jax.jit(step, donate_argnums=(0, 1))


def _check_description(description: Any, weights: int, state: int) -> None:
    said = description.param_bytes, description.state_bytes
    if said != (weights, state):
        raise RuntimeError(
            f"benchmarks: `describe` says {said[0]} bytes of params and {said[1]} of "
            f"state, the arrays have {weights} and {state}. Correct `describe`."
        )


def main() -> None:
    """Print the numbers of one case."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peak")
    parser.add_argument("optimizer", choices=CASES)
    parser.add_argument("who")
    parser.add_argument("--quick", action="store_true")
    args = parser.parse_args()
    tree = (TINY if args.quick else TREES)["gpt2-xl stacked"]
    dtype, contenders = CASES[args.optimizer]
    if args.who == "torch":
        batches = gpt.batches(SEQUENCES, tree.shapes["positions"].shape[0])
        numbers = torch_gpt.trained(tree.shapes, RATE, batches, ROUNDS, ROW)
    else:
        numbers = trained(args.who, contenders[args.who](), tree, dtype)
    print(json.dumps(numbers))


if __name__ == "__main__":
    main()
