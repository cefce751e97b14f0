"""Optimizers of matrices in torch and in pytorch_optimizer, for `benchmarks.matrix`."""

import gc
from collections.abc import Callable
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from itertools import cycle
from typing import Any

import jax

from . import each_step, peers
from .gradients import how_many
from .optimizers import RATE
from .trees import Tree

PEER = 60  # seconds for the steps of a peer, if it is not compiled


def of_torch(
    name: str, tree: Tree, patience: int = peers.PATIENCE
) -> tuple[dict[str, list[float]], str]:
    """The seconds of each step of the peers of the same name; and a note.

    The note says which of them are compiled, and which failed and why.

    Args:
        name: one of `benchmarks.matrix.OURS`.
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
    grads = cycle([draw() for _ in range(how_many(tree))])
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
        return each_step.timed(step, one), compiled
