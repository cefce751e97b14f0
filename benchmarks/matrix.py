"""Optimizers of matrices on one GPU: `python -m benchmarks.gpu matrix`.

Only the matrices of the layers, since the rest is AdamW's in every library. Each step
is called and waited for, 100 times or for `SECONDS`, with gradients that change. The
rows give the median and the worst step, and the time of the device alone, from JAX's
profiler. A step in training is a little faster, since it is not waited for.

Peers are torch's and pytorch_optimizer's optimizers of the same name, compiled by
`torch.compile` where that makes them faster, and Optax's AdamW. Notes say which peers
are compiled, and which are left out, and why. Without a network, `PYTHONPATH` may name
the folder of `pip install --target FOLDER pytorch_optimizer`. To measure only some
optimizers, with at most half a minute to compile each peer:

    python -m benchmarks.gpu matrix --only "muon,soap, every step" --patience 30
"""

import gc
import glob
import tempfile
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from itertools import cycle
from statistics import median
from time import perf_counter
from typing import Any, NamedTuple

import jax
import numpy as np
import optax

import steepest

from . import peers
from .optimizers import RATE
from .rows import Row
from .trees import Tree

STEPS, SECONDS, WARMUPS = 100, 8.0, 12
PEER = 60  # seconds for the steps of a peer, if it is not compiled
# Different gradients: the factors of SOAP would be singular with few. Sixteen of a
# large model do not fit into the memory of a GPU, and four are enough for sides that
# are four times as long as the others.
GRADIENTS, FEW_GRADIENTS, LARGE_MODEL = 16, 4, 500_000_000

OURS: dict[str, Callable[[], Any]] = {
    "muon": lambda: steepest.muon(RATE),
    "soap": lambda: steepest.soap(RATE),
    "soap, every step": lambda: steepest.soap(RATE, frequency=1),
    "soap, one-sided": lambda: steepest.soap(RATE, one_sided=True),
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
    tree: Tree, names: Iterable[str], patience: int = peers.PATIENCE
) -> Iterator[Row]:
    """The median and the worst step of each optimizer, and what was left out.

    An optimizer that fails, for example for lack of memory, has no row, and that is
    printed.

    Args:
        tree: the model.
        names: which of `OURS`.
        patience: the most seconds to compile one of the peers, and for its steps; 0
            not to compile them.
    """
    tree = hidden(tree)
    adamw = of_jax(optax.adamw(RATE), tree, optax.apply_updates).steps
    for name in names:
        try:
            ours = of_jax(OURS[name](), tree, steepest.apply_updates)
        except jax.errors.JaxRuntimeError as error:
            print(f"{tree.name}, {name}: {peers.said(error)}", flush=True)
            continue
        theirs, note = {}, "peer left out: it decomposes long sides from scratch"
        if tree.params < LARGE_MODEL or name not in SLOW_ON_XL:
            theirs, note = of_torch(name, tree, patience)
        times = {"steepest": ours.steps, "optax adamw": adamw, **theirs}
        one = {"compile": ours.compile, "device": ours.device}
        numbers = {
            "median": {who: median(xs) for who, xs in times.items()},
            "worst": {who: max(xs) for who, xs in times.items()},
            **{k: {"steepest": x} for k, x in one.items() if x is not None},
        }
        for quantity, row in numbers.items():
            shown = {who: f"{1e3 * x:.2f} ms" for who, x in row.items()}
            print(tree.name, name, quantity, shown, note, flush=True)
            xs = {who: [x] for who, x in row.items()}
            yield Row("matrix", tree.name, name, quantity, "s", xs, note)


class Measured(NamedTuple):
    """Seconds of an optimizer in JAX."""

    steps: list[float]
    compile: float
    device: float | None  # one step, the kernels alone


def gradients(tree: Tree) -> int:
    """The number of different gradients."""
    return FEW_GRADIENTS if tree.params > LARGE_MODEL else GRADIENTS


def of_jax(tx: Any, tree: Tree, apply: Callable[..., Any]) -> Measured:
    """The seconds of each step, to compile it, and on the device.

    Args:
        tx: the optimizer.
        tree: the params.
        apply: adds the updates to the params.
    """

    def step(params: Any, state: Any, grads: Any) -> Any:
        updates, state = tx.update(grads, state, params)
        return apply(params, updates), state

    params = tree.fill(0, 0.02)
    grads = cycle([tree.fill(k + 1, 0.001) for k in range(gradients(tree))])
    state = jax.jit(tx.init)(params)
    start = perf_counter()
    lowered = jax.jit(step, donate_argnums=(0, 1)).lower(params, state, next(grads))
    compiled = lowered.compile()
    spent = perf_counter() - start
    kept = [params, state]
    del params, state

    def one() -> None:
        kept[:] = compiled(*kept, next(grads))
        jax.block_until_ready(kept)

    seconds = timed(one)
    if not all(bool(jax.numpy.isfinite(x).all()) for x in jax.tree.leaves(kept[0])):
        raise FloatingPointError("The params are no longer finite.")
    return Measured(seconds, spent, device_seconds(one))


def of_torch(
    name: str, tree: Tree, patience: int = peers.PATIENCE
) -> tuple[dict[str, list[float]], str]:
    """The seconds of each step of the peers of the same name; and a note.

    The note says which of them are compiled, and which failed and why.

    Args:
        name: one of `OURS`.
        tree: the params.
        patience: the most seconds to compile one of them, and for its steps; 0 not to
            compile them.
    """
    if find_spec("torch") is None:
        return {}, ""
    torch: Any = import_module("torch")
    makers: dict[str, Callable[[list[Any]], Any]] = {}
    if name == "muon" and hasattr(torch.optim, "Muon"):
        makers["torch"] = partial(
            torch.optim.Muon, lr=RATE, adjust_lr_fn="match_rms_adamw"
        )
    if find_spec("pytorch_optimizer") is not None:
        makers |= _pytorch_optimizer(import_module("pytorch_optimizer"), name)
    found, notes = {}, []
    for who, make in makers.items():
        try:
            found[who], compiled = _torch_steps(torch, make, tree, patience)
            notes += [f"{who} compiled"] if compiled else []
        except Exception as error:  # the other rows are worth having
            notes.append(f"{who} left out: {peers.said(error)[:80]}")
        torch.compiler.reset()
        gc.collect()
        peers.clear()
    return found, ", ".join(notes)


def _pytorch_optimizer(lib: Any, name: str) -> dict[str, Any]:
    muon = lambda kind: lambda ps: kind([{"params": ps, "use_muon": True}], lr=RATE)
    makers = {
        "muon": muon(lib.Muon),
        "normuon": muon(lib.NorMuon),
        "soap": partial(lib.SOAP, lr=RATE),
        "soap, every step": partial(lib.SOAP, lr=RATE, precondition_frequency=1),
        "psgd": partial(lib.Kron, lr=RATE),
        "shampoo": partial(lib.Shampoo, lr=RATE, preconditioning_compute_steps=10),
    }
    return {"pytorch_optimizer": makers[name]} if name in makers else {}


def _torch_steps(
    torch: Any, make: Callable[[list[Any]], Any], tree: Tree, patience: int
) -> tuple[list[float], bool]:
    cuda = torch.cuda.is_available()
    wait = torch.cuda.synchronize if cuda else lambda: None
    normal = partial(torch.randn, device="cuda" if cuda else "cpu")
    leaves = jax.tree.leaves(tree.shapes)
    params = [(0.02 * normal(x.shape)).requires_grad_() for x in leaves]
    draw = lambda: [0.001 * normal(x.shape) for x in leaves]
    grads = cycle([draw() for _ in range(gradients(tree))])
    for p in params:
        p.grad = torch.empty_like(p)
    optimizer = make(params)

    def one() -> None:
        # A compiled step expects the gradients at the same place.
        for p, g in zip(params, next(grads), strict=True):
            p.grad.copy_(g)
        wait()

    fast, compiled = peers.compiled_if_faster(
        torch, optimizer.step, wait, one, patience
    )

    def step() -> None:
        fast()
        wait()

    with peers.at_most(patience or PEER):
        return timed(step, one), compiled


def timed(
    step: Callable[[], None], before: Callable[[], None] | None = None
) -> list[float]:
    """The seconds of each of some steps, after a few that do not count.

    It ends after `SECONDS` and ten steps; if they take long, after a few.

    Args:
        step: makes one step, and waits for it.
        before: called before each step, without being timed.
    """
    seconds: list[float] = []

    def run() -> None:
        begun = perf_counter()
        for k in range(-WARMUPS, STEPS):
            if before is not None:
                before()
            start = perf_counter()
            step()
            if k >= 0 or perf_counter() - begun > SECONDS:
                seconds.append(perf_counter() - start)
            spent = perf_counter() - begun
            if spent > SECONDS and len(seconds) >= (10 if spent < 4 * SECONDS else 3):
                break

    gc.collect()
    gc.disable()  # in whose step a collection happens is chance
    try:
        run()
    finally:
        gc.enable()
    return seconds


def device_seconds(step: Callable[[], None], steps: int = 10) -> float | None:
    """The time that kernels run in one step; `None` without a GPU.

    Args:
        step: makes one step, and waits for it.
        steps: the number of steps to average over.
    """
    if jax.default_backend() != "gpu":
        return None
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder):
            for _ in range(steps):
                step()
        (file,) = glob.glob(f"{folder}/**/*.xplane.pb", recursive=True)
        profile = jax.profiler.ProfileData.from_file(file)
        spent = [
            event.duration_ns
            for plane in profile.planes
            if "GPU" in plane.name
            for line in plane.lines
            if "Stream" in line.name
            for event in line.events
        ]
    return float(np.sum(spent)) / 1e9 / steps
