"""steepest, Optax and torch on one GPU: `python -m benchmarks.gpu [--json FILE]`.

A time is that of one step, averaged over 20 steps (5 if a step is slow) that are called
in a row and waited for at the end, as in training. "inside" averages over ten steps in
one compiled function: the time of the device, without the overhead of Python and JAX.
torch takes part if it is installed; its AdamW is the fused one, and its Muon is
compiled by `torch.compile` if that is faster.
"""

import argparse
import gc
import os
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

# JAX takes what it needs, and leaves the rest for torch. By default it stops at three
# quarters of the memory: too little for SOAP in every step on GPT-2 XL.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
os.environ.setdefault("XLA_PYTHON_CLIENT_MEM_FRACTION", "0.95")

import jax
import jax.numpy as jnp
import numpy as np

import steepest

from . import each_step, machine, matrix, memory, offload, peak, peers
from .measure import plain_copy, rates, stepping
from .optimizers import donated, LIBRARIES, RATE, RECIPES, step_of
from .rows import Bar, COPY, Record, Row
from .timing import clock, race
from .trees import TINY, Tree, TREES

ROW, SHORT_ROW = 20, 5  # steps in a row
ALL = 1 << 62  # elements: packs every leaf

BARS = [
    Bar("gpt2-xl", "adamw, packed", "bandwidth", "copy", 0.85),
    Bar("gpt2-xl", "adamw*", "step", "optax", 1.0),
    Bar("gpt2-xl", "adamw, packed", "step", "torch", 1.0),
    Bar("gpt2", "adamw, packed", "step", "optax", 2.0),
    Bar("gpt2", "adamw, packed", "step", "torch", round(1 / 1.15, 3)),
    Bar("many", "adamw, packed", "step", "optax", 8.0),
    Bar("many", "adamw, packed", "compile", "optax", 12.0),
    Bar("gpt2-xl", "muon", "step", "optax", 3.0),
    Bar("gpt2-xl", "muon", "step", "torch", 1.6),
    Bar("gpt2 matrices", "soap, every step", "median", "pytorch_optimizer", 5.0),
    # 4.5 ms on an H200, whose copy reaches 4.36 TB/s.
    Bar("billion", "adamw, int8", "bandwidth", "copy", 0.88),
]

Make = Callable[[Any], Any]  # library -> transformation
# tree -> its turn and its other quantities: seconds and bytes by name
Maker = Callable[[Tree], tuple[Any, dict[str, Any]]]


def alone(who: str, make: Make, tree: Tree, below: int = 0, times: int = ROW) -> Any:
    """One turn of a JAX library: steps in a row, each called separately.

    Args:
        who: which library.
        make: makes the transformation.
        tree: the params.
        below: smaller leaves are packed, in params, gradients and state.
        times: number of steps in a row.
    """
    lib = LIBRARIES[who]
    tx = steepest.packed(make(lib), below) if below else make(lib)
    params, grads = tree.fill(0, 0.02), tree.fill(1, 0.001)
    if below:
        pack = jax.jit(partial(steepest.pack, tx))
        params, grads = pack(params), pack(grads)
    state = tx.init(params)
    lowered = donated(who, tx).lower(params, state, grads)
    seconds, compiled = clock(lowered.compile)
    memory = compiled.memory_analysis()
    go_on = lambda params, state: compiled(params, state, grads)
    told = {"compile": seconds, "temporary": memory.temp_size_in_bytes}
    return stepping(go_on, params, state, times=times), told


def inside(who: str, make: Make, tree: Tree) -> Any:
    """One turn: ten steps in one compiled function. The time is that of one step."""
    lib = LIBRARIES[who]
    tx = make(lib)
    params, grads = tree.fill(0, 0.02), tree.fill(1, 0.001)
    one = step_of(lib, tx)

    @partial(jax.jit, donate_argnums=(0, 1))
    def ten(params: Any, state: Any, grads: Any) -> Any:
        again = lambda _, kept: one(*kept, grads)
        return jax.lax.fori_loop(0, 10, again, (params, state))

    go_on = lambda params, state: ten(params, state, grads)
    turn = stepping(go_on, params, tx.init(params), times=ROW // 10)
    return lambda: {"step": turn()["step"] / 10}, {}


def copying(tree: Tree) -> Any:
    """One turn: `a + b` into `a`, for the same number of elements."""
    return plain_copy(tree.params, times=ROW), {}


def both(make: Make, below: int = 0, times: int = ROW) -> dict[str, Maker]:
    """steepest, packed or not, against plain Optax."""
    return {
        "steepest": partial(alone, "steepest", make, below=below, times=times),
        "optax": partial(alone, "optax", make, times=times),
    }


def contest(tree: Tree, optimizer: str, makers: dict[str, Maker]) -> Iterator[Row]:
    """Compile, then race. Each contender has its own arrays."""
    row = partial(Row, "gpu", tree.name, optimizer)
    turns: dict[str, Any] = {}
    told: dict[str, dict[str, list[Any]]] = {}
    for who, make in makers.items():
        turns[who], says = make(tree)
        for quantity, number in says.items():
            told.setdefault(quantity, {})[who] = [number]
    times = race(turns, 5, warmups=1)["step"]
    shown = {who: f"{1e3 * min(xs):.3f} ms" for who, xs in times.items()}
    print(tree.name, optimizer, shown, told, file=sys.stderr, flush=True)
    if COPY in times:
        # AdamW reads params, gradients and two moments, and writes all but the
        # gradients.
        moved = {who: (12 if who == COPY else 28) * tree.params for who in times}
        yield row("bandwidth", "B/s", rates(moved, times))
        del times[COPY]
    yield row("step", "s", times)
    for quantity, unit in (("compile", "s"), ("temporary", "B")):
        if quantity in told:
            yield row(quantity, unit, told[quantity])
    turns.clear()
    peers.clear()
    gc.collect()


def of_gpt2(tree: Tree, torch: dict[str, Maker]) -> Iterator[Row]:
    """Every recipe; and AdamW packed, and inside one function."""
    for name, recipe in RECIPES.items():
        more = torch if name == "adamw" else {}
        yield from contest(tree, name, both(partial(_at, recipe.make)) | more)
    adamw = partial(_at, RECIPES["adamw"].make)
    yield from contest(tree, "adamw, packed", both(adamw, 65536) | torch)
    yield from contest(tree, "adamw, all packed", both(adamw, ALL) | torch)
    ways = {who: partial(inside, who, adamw) for who in LIBRARIES}
    yield from contest(tree, "adamw, inside", ways)


def of_xl(tree: Tree, torch: dict[str, Maker]) -> Iterator[Row]:
    """AdamW against the memory bandwidth of the machine, and two other optimizers."""
    adamw = partial(_at, RECIPES["adamw"].make)
    for name, below in (("adamw", 0), ("adamw, packed", 65536)):
        makers = both(adamw, below) | torch | {COPY: copying}
        yield from contest(tree, name, makers)
    for name in ("clip+adamw", "lion"):
        yield from contest(tree, name, both(partial(_at, RECIPES[name].make)))


def of_muon(tree: Tree, torch: dict[str, Maker]) -> Iterator[Row]:
    """steepest's Muon against Optax's and torch's; and steepest's `contrib.muon`."""
    band = singular_values(tree)
    for row in contest(tree, "muon", both(_modern, times=SHORT_ROW) | torch):
        yield replace(row, note=band) if row.quantity == "step" else row
    makers = both(partial(_at, RECIPES["muon"].make), times=SHORT_ROW)
    yield from contest(tree, "contrib.muon", makers)


def of_many(tree: Tree, torch: dict[str, Maker]) -> Iterator[Row]:
    """Thousands of small leaves."""
    del torch
    adamw = partial(_at, RECIPES["adamw"].make)
    yield from contest(tree, "adamw, packed", both(adamw, 65536, SHORT_ROW))


def singular_values(tree: Tree) -> str:
    """The range of singular values of an update, and the range without rounding.

    The input matrices have known singular values, 1 to 0.01. Without rounding, the
    update would apply the polynomials to each of them, divided by the Frobenius norm.
    """
    tx, found, exact = steepest.scale_by_polar(), [], []
    shapes = {x.shape for x in jax.tree.leaves(tree.shapes)}
    hidden = [s for s in shapes if len(s) == 2 and max(s) < 10_000]
    for k, (m, n) in enumerate(sorted(hidden)):
        draw = lambda j, size, k=k: jax.random.normal(jax.random.key(2 * k + j), size)
        q, _ = jnp.linalg.qr(draw(0, (m, min(m, n))))
        r, _ = jnp.linalg.qr(draw(1, (n, min(m, n))))
        values = np.geomspace(1, 0.01, min(m, n))
        g = jnp.matmul(q * jnp.float32(values), r.T, precision="highest")
        u, _ = tx.update(g, tx.init(g))
        found += [*np.linalg.svd(np.asarray(u, np.float64), compute_uv=False)]
        values /= np.linalg.norm(values)
        for a, b, c in steepest.numerics.polynomials("gpu", "polar_express"):
            values = a * values + b * values**3 + c * values**5
        exact += [*values]
    band = lambda xs: f"{min(xs):.3f} to {max(xs):.3f}"
    return f"singular values {band(found)}, without rounding {band(exact)}"


PARTS = {
    "gpt2": (of_gpt2, "gpt2", "adamw"),
    "xl": (of_xl, "gpt2-xl", "adamw"),
    "muon": (of_muon, "gpt2-xl", "muon"),
    "many": (of_many, "many", ""),
    "matrix": (matrix.of_matrices, "gpt2", ""),
    "matrix-xl": (matrix.of_matrices, "gpt2-xl", ""),
    "offload": (offload.of_host_memory, "gpt2-xl", ""),
    "memory": (memory.of_few_bits, "billion", "adamw"),
    "memory-muon": (memory.of_muon, "wide billion", ""),
    "peak": (peak.of_training, "gpt2-xl stacked", ""),
}


# The cases of all parts that can be measured one by one, each once.
CASES = list(
    dict.fromkeys([*matrix.OURS, *memory.ELEMENTWISE, *memory.MUON, *peak.CASES])
)


def main() -> None:
    """Measure, and save the record row by row."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu")
    parser.add_argument("parts", nargs="*", default=list(PARTS), help=", ".join(PARTS))
    parser.add_argument("--quick", action="store_true", help="tiny trees")
    parser.add_argument("--json", type=Path, metavar="FILE", help="file for results")
    parser.add_argument(
        "--only",
        type=_names,
        metavar="NAMES",
        help=f"for matrix, memory and peak, some of: {'; '.join(CASES)}",
    )
    parser.add_argument(
        "--patience",
        type=int,
        default=peers.PATIENCE,
        metavar="SECONDS",
        help="the most seconds to compile one of torch's optimizers; 0 not to compile; "
        "for matrix and matrix-xl, -1 to leave them out",
    )
    parser.add_argument(
        "--peers-only",
        action="store_true",
        help="for matrix and matrix-xl, add the peers to the rows in the file",
    )
    parser.add_argument(
        "--compile-only",
        action="store_true",
        help="for matrix and matrix-xl, fill JAX's persistent cache",
    )
    parser.add_argument(
        "--seconds",
        type=float,
        default=each_step.SECONDS,
        help="for matrix and matrix-xl, the time for the steps of an optimizer",
    )
    args = parser.parse_args()
    each_step.SECONDS = args.seconds
    trees = TINY if args.quick else TREES
    matrices = [x for x in args.only or () if x in matrix.OURS] or list(matrix.OURS)
    if args.compile_only:
        models = [trees[PARTS[part][1]] for part in args.parts]
        matrix.compile_all(models, matrices)
        return
    record = Record(machine.describe(), "python -m benchmarks.gpu", quick=args.quick)
    before = record
    if args.json and args.json.exists():  # parts may be measured separately
        before = Record.load(args.json)
        record = replace(before, machine=record.machine)
    record.bars = BARS
    for part in args.parts:
        measure, name, peer = PARTS[part]
        times = SHORT_ROW if part == "muon" else ROW
        torch = peers.torch_turns(times, args.patience)
        tree = trees[name]
        shown = matrix.hidden(tree) if part.startswith("matrix") else tree
        record.trees[shown.name] = shown.describe()
        rows: list[Row] = []
        peer_turns = {"torch": torch[peer]} if peer in torch else {}
        if part in ("offload", "peak"):  # in processes of their own
            measure = partial(measure, quick=args.quick)
        if part in ("memory", "memory-muon", "peak"):
            measure = partial(measure, only=args.only or ())
        if part.startswith("matrix"):
            known = list(record.rows) if args.peers_only else None
            measured = measure(tree, matrices, args.patience, known)
        else:
            measured = measure(tree, peer_turns)
        for row in measured:
            if part.startswith("matrix") and args.patience < 0:
                row = matrix.with_old_peers(row, before)
            rows.append(row)
            new = {(x.tree, x.optimizer) for x in rows}
            old = [x for x in record.rows if (x.tree, x.optimizer) not in new]
            record.rows = [*old, *rows]
            if args.json:  # after each row: the machine may be taken away
                record.save(args.json)


def _names(text: str) -> list[str]:
    """Names that may contain a comma and a space: `muon,soap, every step`."""
    names = re.split(",(?! )", text)
    if unknown := [name for name in names if name not in CASES]:
        raise argparse.ArgumentTypeError(f"unknown: {'; '.join(unknown)}")
    return names


def _at(recipe: Callable[[Any, float], Any], lib: Any) -> Any:
    return recipe(lib, RATE)


def _modern(lib: Any) -> Any:
    """What a user would choose: Optax has Muon only in `contrib`."""
    if lib is steepest:
        return steepest.muon(RATE)

    def labels(params: Any) -> Any:
        """Muon only for the matrices of the layers, as in steepest and torch."""
        hidden = lambda path, p: p.ndim == 2 and "layers" in str(path)
        return jax.tree_util.tree_map_with_path(hidden, params)

    muon = lib.contrib.muon(RATE, weight_decay=0.1, consistent_rms=0.2)
    return lib.partition({True: muon, False: lib.adamw(RATE)}, labels)


if __name__ == "__main__":
    main()
