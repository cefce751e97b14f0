"""torch's optimizers on the same trees, if torch is installed."""

import gc
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from statistics import median
from time import perf_counter
from types import FrameType
from typing import Any

import jax

from .optimizers import RATE
from .trees import Tree

Made = tuple[Callable[[], dict[str, float]], dict[str, Any]]
Step = Callable[[], object]

# Steps before the comparison: those in which SOAP does more are compiled, too.
WARM, TRIED = 12, 10
PATIENCE = 120  # seconds: what takes longer to compile and to try is not compiled


def torch_turns(
    times: int, patience: int = PATIENCE
) -> dict[str, Callable[[Tree], Made]]:
    """For each optimizer of this torch, a function to make turns of `times` steps.

    Args:
        times: number of steps in a turn.
        patience: the most seconds to compile one of them; 0 not to compile.
    """
    if find_spec("torch") is None:
        return {}
    torch: Any = import_module("torch")
    found = {"adamw": partial(_turn, torch, _adamw, times, patience)}
    if hasattr(torch.optim, "Muon"):
        found["muon"] = partial(_turn, torch, _muon, times, patience)
    return found


def clear() -> None:
    """Free torch's memory."""
    gc.collect()
    if find_spec("torch") is not None:
        torch: Any = import_module("torch")
        if torch.cuda.is_available():
            torch.cuda.empty_cache()


def compiled_if_faster(
    torch: Any,
    step: Step,
    wait: Step,
    before: Step = lambda: None,
    patience: int = PATIENCE,
) -> tuple[Step, bool]:
    """The step after `torch.compile`, if that makes it faster; and whether it does.

    If it fails or takes too long, that is printed, and the step stays as it is.

    Args:
        torch: the package.
        step: takes a step. It is called a few times.
        wait: waits for the device.
        before: called before each step, without being timed.
        patience: the most seconds to compile and to try it; 0 not to compile.
    """
    if not patience:
        return step, False

    def seconds(step: Step) -> float:
        before()
        start = perf_counter()
        step()
        wait()
        return perf_counter() - start

    def typical(step: Step) -> float:
        times = [seconds(step)]
        while len(times) < TRIED and sum(times) < patience / 8:
            times.append(seconds(step))
        return median(times)

    try:
        with at_most(patience):
            seconds(step)  # the first step makes the state
            plain = typical(step)
            fast, start = torch.compile(step), perf_counter()
            for _ in range(WARM):
                seconds(fast)
            spent = perf_counter() - start
            quick = typical(fast)
    except Exception as error:  # whatever a compiler may raise
        print(f"torch.compile: {said(error)}", flush=True)
        return step, False
    shown = [f"{1e3 * x:.2f} ms" for x in (plain, quick)]
    print(f"torch: {shown[0]}, compiled in {spent:.0f} s: {shown[1]}", flush=True)
    return (fast, True) if quick < plain else (step, False)


def said(error: Exception) -> str:
    """An error in one line."""
    text = str(error).strip().splitlines() or [""]
    return f"{type(error).__name__}: {text[0][:200]}"


@contextmanager
def at_most(seconds: int) -> Iterator[None]:
    """Raise a `TimeoutError` if the block takes longer, in the main thread.

    Args:
        seconds: the limit.
    """

    def stop(number: int, frame: FrameType | None) -> None:
        raise TimeoutError(f"It took more than {seconds} s.")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def _turn(
    torch: Any,
    make: Callable[[Any, list[Any], list[str]], Any],
    times: int,
    patience: int,
    tree: Tree,
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

    def one() -> None:
        for optimizer in optimizers:
            optimizer.step()

    # A fused AdamW is one kernel already.
    step = one
    if make is not _adamw:
        step, _ = compiled_if_faster(torch, one, wait, patience=patience)

    def turn() -> dict[str, float]:
        wait()
        start = perf_counter()
        for _ in range(times):
            step()
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
