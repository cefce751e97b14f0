"""Runs torch, and stores what it did: `python -m tests.exchange._torch_run`.

The stored runs keep torch out of the tests. Made with torch 2.13.0 on a CPU.
"""

import json
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from ._torch_cases import Case, CASES, gradients, MOVE, start, STEPS

FILE = Path(__file__).parent / "data" / "torch.json"


@contextmanager
def wide_newton_schulz(torch: Any):
    """torch's Muon with Newton-Schulz in the dtype of the gradient."""
    module = __import__("torch.optim._muon", fromlist=["_muon"])
    original = module._zeropower_via_newtonschulz
    del torch

    class Wide:
        """A tensor that stays wide when it is to become bfloat16."""

        def __init__(self, x: Any):
            self.x, self.shape, self.size = x, x.shape, x.size

        def bfloat16(self) -> Any:
            return self.x.clone()

    with mock.patch.object(
        module,
        "_zeropower_via_newtonschulz",
        lambda g, *rest: original(Wide(g), *rest),
    ):
        yield


def optimizer_of(case: Case, values: dict[str, Any]) -> tuple[Any, list[Any]]:
    """The torch optimizer, and its parameters with these values."""
    import torch

    tensors = [torch.nn.Parameter(torch.tensor(np.array(x))) for x in values.values()]
    return getattr(torch.optim, case.optimizer)(tensors, **case.arguments), tensors


def step(case: Case, optimizer: Any, tensors: list[Any], t: int) -> None:
    """Step `t`, counted from 0."""
    import torch

    for x, g in zip(tensors, gradients(case)[t].values(), strict=True):
        x.grad = torch.tensor(g)
    for group in optimizer.param_groups:
        group["lr"] = case.rate(t) if case.rate else group["lr"]
    if case.wide:
        with wide_newton_schulz(torch):
            optimizer.step()
    else:
        optimizer.step()
    for group in optimizer.param_groups:  # as a scheduler does after the step
        group["lr"] = case.rate(t + 1) if case.rate else group["lr"]


def plain(x: Any) -> Any:
    """A state dict as JSON."""
    if hasattr(x, "detach"):
        x = x.detach().numpy()
    if isinstance(x, np.ndarray):
        # The shortest digits of a float32.
        return [plain(y) for y in x] if x.ndim else float(str(x))
    if isinstance(x, dict):
        return {k: plain(y) for k, y in x.items()}
    if isinstance(x, list | tuple):
        return [plain(y) for y in x]
    return float(str(x)) if isinstance(x, np.floating) else x


def run(case: Case) -> dict[str, Any]:
    """Ten steps in torch, and what it had after five."""
    optimizer, tensors = optimizer_of(case, start(case))
    middle: dict[str, Any] = {}
    for t in range(STEPS):
        step(case, optimizer, tensors, t)
        if t + 1 == MOVE:
            middle = plain(
                {
                    "state_dict": optimizer.state_dict(),
                    "params": dict(zip(case.shapes, tensors, strict=True)),
                }
            )
    end = {
        "state": optimizer.state_dict()["state"],
        "params": dict(zip(case.shapes, tensors, strict=True)),
    }
    return {"middle": middle, "end": plain(end)}


def main() -> None:
    """Run every case and store it."""
    rows = [f"{json.dumps(name)}: {json.dumps(run(x))}" for name, x in CASES.items()]
    FILE.write_text("{\n" + ",\n".join(rows) + "\n}\n")


if __name__ == "__main__":
    main()
