"""torch's optimizers on the same trees, if torch is installed."""

import gc
from collections.abc import Callable
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from time import perf_counter
from typing import Any

import jax

from .optimizers import RATE
from .trees import Tree

Made = tuple[Callable[[], dict[str, float]], dict[str, Any]]


def torch_turns(times: int) -> dict[str, Callable[[Tree], Made]]:
    """For each optimizer of this torch, a function to make turns of `times` steps."""
    if find_spec("torch") is None:
        return {}
    torch: Any = import_module("torch")
    found = {"adamw": partial(_turn, torch, _adamw, times)}
    if hasattr(torch.optim, "Muon"):
        found["muon"] = partial(_turn, torch, _muon, times)
    return found


def clear() -> None:
    """Free torch's memory."""
    gc.collect()
    if find_spec("torch") is not None:
        torch: Any = import_module("torch")
        if torch.cuda.is_available():
            torch.cuda.empty_cache()


def _turn(
    torch: Any, make: Callable[[Any, list[Any], list[str]], Any], times: int, tree: Tree
) -> Made:
    """A turn of steps in a row, waited for at the end; the time is that of one."""
    cuda = torch.cuda.is_available()
    device = "cuda" if cuda else "cpu"
    paths, leaves = zip(*jax.tree.leaves_with_path(tree.shapes), strict=True)
    params = []
    for leaf in leaves:
        p = (0.02 * torch.randn(leaf.shape, device=device)).requires_grad_()
        p.grad = 0.001 * torch.randn(leaf.shape, device=device)
        params.append(p)
    optimizers = make(torch, params, [jax.tree_util.keystr(path) for path in paths])
    wait = torch.cuda.synchronize if cuda else lambda: None

    def turn() -> dict[str, float]:
        wait()
        start = perf_counter()
        for _ in range(times):
            for optimizer in optimizers:
                optimizer.step()
        wait()
        return {"step": (perf_counter() - start) / times}

    return turn, {}


def _adamw(torch: Any, params: list[Any], paths: list[str]) -> list[Any]:
    del paths
    return [torch.optim.AdamW(params, lr=RATE, fused=params[0].is_cuda)]


def _muon(torch: Any, params: list[Any], paths: list[str]) -> list[Any]:
    """Muon for the matrices of the layers, fused AdamW for the rest."""
    hidden = [
        p.ndim == 2 and "layers" in path for p, path in zip(params, paths, strict=True)
    ]
    pairs = list(zip(params, hidden, strict=True))
    mine, rest = ([p for p, yes in pairs if yes is want] for want in (True, False))
    scaled = {"adjust_lr_fn": "match_rms_adamw"}
    return [torch.optim.Muon(mine, lr=RATE, **scaled), *_adamw(torch, rest, [])]
