"""Training with memory in few bits: `python -m benchmarks.low_bits [NAME ...]`.

A model of bytes is trained with each optimizer and each storage of its memory, all
seeds in one program. All storages start from the same params and see the same batches,
so the differences to float32 are paired: their mean over the seeds, and its standard
error. By default the model is that of the race's problem `bytes`. With `--layers` it is
a GPT of any size, for a GPU:

    python -m benchmarks.low_bits --layers 4 --steps 3000 --kinds int8 --json FILE
"""

import argparse
from collections.abc import Callable
from dataclasses import replace
from math import log
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import steepest
from steepest.race.problems import load

from . import gpt, machine
from .rows import OURS, Record, Row
from .sections import low_bits
from .trees import stacked_gpt, Tree

WINDOWS = 128  # held-out windows of the GPT
QUICK = {"seeds": 2, "steps": 2, "layers": 1, "width": 64, "context": 16, "batch": 2}

# (storage, factor of the learning rate) -> an optimizer, at a rate that is good for the
# model of the race
OPTIMIZERS: dict[str, Callable[[Any, float], Any]] = {
    "adamw": lambda kind, x: steepest.adamw(3e-3 * x, memory_dtype=kind),
    "lion": lambda kind, x: steepest.lion(1e-3 * x, memory_dtype=kind),
    "muon": lambda kind, x: steepest.muon(
        1e-2 * x, memory_dtype=kind, stacked="^layers/"
    ),
}


class Model(NamedTuple):
    """What is trained."""

    tree: Tree  # its name, and its params
    factor: float  # of the learning rates
    data: Any
    init: Callable[[Any], Any]  # key -> params
    batches: Callable[[Any, Any], Any]  # key, data -> batch
    loss: Callable[[Any, Any], Any]  # params, batch -> nats
    metric: Callable[[Any, Any], Any]  # params, data -> bits per held-out byte


def of_the_race() -> Model:
    """The transformer of the race's problem `bytes`."""
    problem = load("bytes")
    assert problem.metric is not None
    shapes = jax.eval_shape(problem.init, jax.random.key(0))
    return Model(
        tree=Tree("bytes", problem.about, shapes),
        factor=1.0,
        data=jax.tree.map(jnp.asarray, problem.data),
        init=problem.init,
        batches=problem.batches,
        loss=problem.loss,
        metric=problem.metric,
    )


def larger(layers: int, width: int, context: int, batch: int) -> Model:
    """A GPT of bytes; the last tenth of the text is held out.

    Args:
        layers: the number of layers.
        width: the width, a multiple of 64.
        context: the length of a window.
        batch: the number of windows in a batch.
    """
    text = jnp.asarray(load("bytes").data["train"]).astype(jnp.int32)
    end = len(text) * 9 // 10
    window = jnp.arange(context + 1)[None]
    draw = lambda key: jax.random.randint(key, (batch, 1), 0, end - context)
    held = np.linspace(end, len(text) - context - 1, WINDOWS).astype(int)

    def metric(params: Any, text: Any) -> Any:
        windows = text[held[:, None] + window]
        one = lambda window: gpt.loss(params, window[None])
        return jnp.mean(jax.lax.map(one, windows)) / log(2)

    shapes = stacked_gpt(layers, width, 256, context)
    says = f"a GPT of bytes, {layers} layers, width {width}, context {context}"
    return Model(
        tree=Tree(f"bytes {layers} x {width}", says, shapes),
        factor=64 / width,  # wider models need smaller rates
        data=text,
        init=lambda key: gpt.init(shapes, jnp.float32, key),
        batches=lambda key, text: text[draw(key) + window],
        loss=gpt.loss,
        metric=metric,
    )


def final_bits(model: Model, tx: Any, seeds: int, steps: int) -> list[float]:
    """Bits per held-out byte at the end, for each seed.

    Args:
        model: what is trained.
        tx: the optimizer.
        seeds: the number of runs, all in one program.
        steps: the number of steps of each.
    """
    data = model.data

    def step(carry: Any, key: Any) -> Any:
        params, state = carry
        grads = jax.grad(model.loss)(params, model.batches(key, data))
        updates, state = tx.update(grads, state, params)
        return (steepest.apply_updates(params, updates), state), None

    def run(key: Any) -> Any:
        first, second = jax.random.split(key)
        params = model.init(first)
        keys = jax.random.split(second, steps)
        (params, _), _ = jax.lax.scan(step, (params, tx.init(params)), keys)
        return model.metric(params, data)

    keys = jax.random.split(jax.random.key(0), seeds)
    return np.asarray(jax.jit(jax.vmap(run))(keys)).tolist()


def measured(model: Model, name: str, kinds: list[str], seeds: int, steps: int) -> Any:
    """A row for each storage, one after another, compared with float32.

    Args:
        model: what is trained.
        name: of `OPTIMIZERS`.
        kinds: the storages.
        seeds: the number of runs.
        steps: the number of steps of each.
    """
    ends = lambda kind: final_bits(
        model, OPTIMIZERS[name](kind, model.factor), seeds, steps
    )
    wide, note = ends(None), f"{steps} steps"
    for kind in kinds:
        times = {OURS: ends(kind), "float32": wide}
        optimizer = f"{name}, {kind}"
        yield Row(
            "low bits", model.tree.name, optimizer, "at the end", "bits", times, note
        )


def main() -> None:
    """Train, print a table, and save the record row by row."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.low_bits")
    parser.add_argument("names", nargs="*", help=", ".join(OPTIMIZERS))
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--steps", type=int, default=800)
    parser.add_argument("--kinds", default="int8,float8,int4")
    parser.add_argument("--layers", type=int, help="of a GPT, instead of the race's")
    parser.add_argument("--width", type=int, default=256, help="of the GPT")
    parser.add_argument("--context", type=int, default=256, help="of the GPT")
    parser.add_argument("--batch", type=int, default=32, help="of the GPT")
    parser.add_argument("--quick", action="store_true", help="two steps, tiny GPT")
    parser.add_argument("--json", type=Path, metavar="FILE", help="file for results")
    args = parser.parse_args()
    for option, value in QUICK.items() if args.quick else ():
        setattr(args, option, value)
    sizes = (args.width, args.context, args.batch)
    model = larger(args.layers, *sizes) if args.layers else of_the_race()
    command = "python -m benchmarks.low_bits"
    record = Record(machine.describe(), command, quick=args.quick)
    if args.json and args.json.exists():  # optimizers may be measured separately
        before = Record.load(args.json)
        if before.machine["device"] == record.machine["device"]:
            record = replace(before, machine=record.machine)
    record.trees[model.tree.name] = model.tree.describe()
    print(record.machine, flush=True)
    new: list[Row] = []
    for name in args.names or OPTIMIZERS:
        kinds = args.kinds.split(",")
        for row in measured(model, name, kinds, args.seeds, args.steps):
            new.append(row)
            print(*low_bits([row]).splitlines()[-1:], flush=True)
            same = lambda x, row=row: (x.tree, x.optimizer) == (row.tree, row.optimizer)
            record.rows = [*(x for x in record.rows if not same(x)), row]
            if args.json:  # after each row: the machine may be taken away
                record.save(args.json)
    print(f"\n{low_bits(new)}")


if __name__ == "__main__":
    main()
