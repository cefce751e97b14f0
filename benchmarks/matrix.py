"""Optimizers of matrices on one GPU: `python -m benchmarks.gpu matrix`.

Only the matrices of the layers, since the rest is AdamW's in every library. Each step
is called and waited for, 100 times or for some seconds, with gradients that change. The
rows give the median and the worst step, and the same for the time of the device alone,
from JAX's profiler (20 steps). A step in training is a little faster, since it is not
waited for.

Peers are torch's and pytorch_optimizer's optimizers of the same name, compiled by
`torch.compile` where that makes them faster, and Optax's AdamW. Notes say which peers
are compiled, and which are left out, and why. Without a network, `PYTHONPATH` may name
the folder of `pip install --target FOLDER pytorch_optimizer`. To measure only some
optimizers, with at most half a minute to compile each peer:

    python -m benchmarks.gpu matrix --only "muon,soap, every step" --patience 30

Most of the time goes to XLA's compiler. To compile in advance, several at once, and to
measure our optimizers first and the peers later:

    export JAX_COMPILATION_CACHE_DIR=...
    python -m benchmarks.gpu matrix matrix-xl --compile-only
    python -m benchmarks.gpu matrix matrix-xl --json FILE --patience -1
    python -m benchmarks.gpu matrix matrix-xl --json FILE --peers-only
"""

import gc
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import cycle
from statistics import median
from time import perf_counter
from typing import Any, NamedTuple

import jax
import optax

import steepest

from . import each_step, peers
from .device import device_steps
from .gradients import Draw, how_many, LARGE_MODEL, steep
from .matrix_peers import of_torch
from .optimizers import RATE
from .rows import Record, Row
from .trees import Tree

# Steps that are called in a row: two periods of what happens every tenth step, or a few
# if they take longer than the steps that are waited for.
ROW, SLOW_ROW = 20, 5
STEEP = "soap, steep gradients"
_WHEN = "peers measured on"

OURS: dict[str, Callable[[], Any]] = {
    "muon": lambda: steepest.muon(RATE),
    "soap": lambda: steepest.soap(RATE),
    "soap, keep_stacks": lambda: steepest.soap(RATE, keep_stacks=True),
    "soap, keep_stacks, float16 bases": lambda: steepest.soap(
        RATE, keep_stacks=True, basis_dtype="float16"
    ),
    "soap, every step": lambda: steepest.soap(RATE, frequency=1),
    "soap, one-sided": lambda: steepest.soap(RATE, one_sided=True),
    STEEP: lambda: steepest.soap(RATE),
    "normuon": lambda: steepest.normuon(RATE),
    "psgd": lambda: steepest.psgd(RATE),
    "soap_muon": lambda: steepest.soap_muon(RATE, frequency=10),
    "shampoo": lambda: steepest.shampoo(RATE, frequency=10),
}
# On XL, these peers decompose 144 sides of 4800 and 6400 from scratch.
SLOW_ON_XL = ("soap", "soap, every step", "shampoo")


def hidden(tree: Tree) -> Tree:
    """The matrices of the layers: all that Muon takes."""
    lines = steepest.describe(steepest.muon(RATE), tree.shapes).lines
    pairs = zip(lines, jax.tree.leaves(tree.shapes), strict=True)
    shapes = [x for line, x in pairs if "muon" in line.groups]
    return Tree(f"{tree.name} matrices", f"{tree.says}, matrices only", shapes)


def of_matrices(
    tree: Tree,
    names: Iterable[str],
    patience: int = peers.PATIENCE,
    known: Iterable[Row] | None = None,
) -> Iterator[Row]:
    """The median and the worst step of each optimizer, as they are known.

    They are also printed. See `_rows`.
    """
    for row in _rows(hidden(tree), names, patience, known):
        shown = {who: f"{1e3 * xs[0]:.2f} ms" for who, xs in row.times.items()}
        print(row.tree, row.optimizer, row.quantity, shown, row.note, flush=True)
        yield row


def _rows(
    tree: Tree, names: Iterable[str], patience: int, known: Iterable[Row] | None
) -> Iterator[Row]:
    """The median and the worst step of each optimizer, and what was left out.

    An optimizer that fails, for example for lack of memory, has no row, and that is
    printed.

    Args:
        tree: the model.
        names: which of `OURS`.
        patience: the most seconds to compile one of the peers, and for its steps; 0 not
            to compile them, -1 to leave them out.
        known: rows to which the peers are added; by default they are measured.
    """
    if known is None:
        yield from of_ours(tree, names, patience)
        return
    rows = [row for row in known if (row.section, row.tree) == ("matrix", tree.name)]
    for name in names:
        mine = [row for row in rows if row.optimizer == name]
        yield from with_peers(mine, name, tree, patience) if mine else ()


def of_ours(tree: Tree, names: Iterable[str], patience: int) -> Iterator[Row]:
    """The rows of each optimizer, and with patience, of its peers."""
    adamw = of_jax(optax.adamw(RATE), tree, optax.apply_updates).steps
    for name in names:
        try:
            draw = steep if name == STEEP else Tree.fill
            ours = of_jax(OURS[name](), tree, steepest.apply_updates, draw)
        except jax.errors.JaxRuntimeError as error:
            print(f"{tree.name}, {name}: {peers.said(error)}", flush=True)
            continue
        finally:
            gc.collect()
        times = {"steepest": ours.steps, "optax adamw": adamw}
        one = {
            "in a row": ours.row,
            "device": ours.device and median(ours.device),
            "device, worst": ours.device and max(ours.device),
            "compile": None if _is_cached() else ours.compile,
        }
        numbers = {
            "median": {who: median(xs) for who, xs in times.items()},
            "worst": {who: max(xs) for who, xs in times.items()},
            **{k: {"steepest": x} for k, x in one.items() if x is not None},
        }
        rows = [
            Row(
                "matrix",
                tree.name,
                name,
                quantity,
                "s",
                {k: [x] for k, x in xs.items()},
            )
            for quantity, xs in numbers.items()
        ]
        yield from rows if patience < 0 else with_peers(rows, name, tree, patience)


def with_peers(
    rows: Iterable[Row], name: str, tree: Tree, patience: int
) -> Iterator[Row]:
    """The same rows, with the peers of the same name."""
    theirs, note = {}, "peer left out: it decomposes long sides from scratch"
    if tree.params < LARGE_MODEL or name not in SLOW_ON_XL:
        theirs, note = of_torch(name, tree, patience)
    for row in rows:
        number = {"median": median, "worst": max}.get(row.quantity)
        more = {} if number is None else {k: [number(xs)] for k, xs in theirs.items()}
        yield replace(row, times=row.times | more, note=note)


def with_old_peers(row: Row, before: Record) -> Row:
    """The row, with the peers of an earlier run, and a note that says so.

    Args:
        row: a row without peers.
        before: the earlier run.
    """
    where = lambda row: (row.section, row.tree, row.optimizer, row.quantity)
    for old in before.rows:
        peers_then = {k: x for k, x in old.times.items() if k not in row.times}
        if where(old) == where(row) and peers_then:
            date = f"{_WHEN} {before.machine['date'][:10]}"
            said = [old.note] if old.note else []
            note = ", ".join(said if _WHEN in old.note else [*said, date])
            return replace(row, times=row.times | peers_then, note=note)
    return row


def compile_all(trees: Iterable[Tree], names: Sequence[str], threads: int = 4) -> None:
    """Compile the steps of all optimizers into JAX's persistent cache.

    A later run with the same `JAX_COMPILATION_CACHE_DIR` starts sooner.

    Args:
        trees: the models.
        names: which of `OURS`.
        threads: the number of programs that are compiled at once.
    """

    def one(name: str, tree: Tree) -> None:
        start = perf_counter()
        adamw = name == "adamw"
        tx = optax.adamw(RATE) if adamw else OURS[name]()
        apply = optax.apply_updates if adamw else steepest.apply_updates
        params = jax.eval_shape(lambda: tree.fill(0, 0.02))
        state = jax.eval_shape(tx.init, params)
        jax.jit(tx.init).lower(params).compile()
        try:
            _step(tx, apply).lower(params, state, params).compile()
        except jax.errors.JaxRuntimeError as error:
            print(f"{tree.name}, {name}: {peers.said(error)}", flush=True)
        print(f"{tree.name}, {name}: {perf_counter() - start:.0f} s", flush=True)

    with ThreadPoolExecutor(threads) as pool:
        jobs = [
            pool.submit(one, name, hidden(tree))
            for tree in trees
            for name in ("adamw", *names)
        ]
        for job in jobs:
            job.result()


def _step(tx: Any, apply: Callable[..., Any]) -> Any:
    """A step, not yet compiled."""

    def step(params: Any, state: Any, grads: Any) -> Any:
        updates, state = tx.update(grads, state, params)
        return apply(params, updates), state

    return jax.jit(step, donate_argnums=(0, 1))


def _is_cached() -> bool:
    """Whether a program may come from a cache, so that its time means nothing."""
    return bool(jax.config.jax_compilation_cache_dir)


class Measured(NamedTuple):
    """Seconds of an optimizer in JAX."""

    steps: list[float]
    row: float  # one step, of several that are not waited for
    compile: float
    device: list[float] | None  # of each step, the kernels alone


def of_jax(
    tx: Any, tree: Tree, apply: Callable[..., Any], draw: Draw = Tree.fill
) -> Measured:
    """The seconds of each step, to compile it, and on the device.

    Args:
        tx: the optimizer.
        tree: the params.
        apply: adds the updates to the params.
        draw: makes the gradients.
    """
    params = tree.fill(0, 0.02)
    grads = cycle([draw(tree, k + 1, 0.001) for k in range(how_many(tree))])
    state = jax.jit(tx.init)(params)
    start = perf_counter()
    compiled = _step(tx, apply).lower(params, state, next(grads)).compile()
    spent = perf_counter() - start
    kept = [params, state]
    del params, state

    def go_on() -> None:
        kept[:] = compiled(*kept, next(grads))

    def one() -> None:
        go_on()
        jax.block_until_ready(kept)

    seconds = each_step.timed(one)
    steps = ROW if ROW * median(seconds) < each_step.SECONDS else SLOW_ROW
    start = perf_counter()
    for _ in range(steps):
        go_on()
    jax.block_until_ready(kept)
    row = (perf_counter() - start) / steps
    if not all(bool(jax.numpy.isfinite(x).all()) for x in jax.tree.leaves(kept[0])):
        raise FloatingPointError("The params are no longer finite.")
    return Measured(seconds, row, spent, device_steps(one, steps))
