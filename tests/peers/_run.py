"""Runs other packages and stores where they went: `python -m tests.peers._run [NAMES]`.

The stored runs keep the packages out of the tests. Made with torch 2.13.0 on a CPU.
"""

# pyright: reportMissingImports=false

import sys
from contextlib import ExitStack
from typing import Any

import numpy as np

from ._cases import DATA, gradients, Peer, PEERS, start, STORED
from ._drivers import DRIVERS
from ._patches import PATCHES


def run(peer: Peer) -> dict[str, np.ndarray]:
    """How far each parameter is from its start, after the steps of `STORED`."""
    import torch

    torch.manual_seed(0)
    first = start(peer)
    tensors: dict[str, Any] = {}
    rows: dict[str, list[np.ndarray]] = {name: [] for name in first}
    with ExitStack() as stack:
        for patch in peer.patches:
            stack.enter_context(PATCHES[patch]())
        for name, x in first.items():
            tensors[name] = torch.nn.Parameter(torch.from_numpy(x.copy()))
        optimizer = DRIVERS[peer.package](peer, tensors)
        for t, grads in enumerate(gradients(peer), 1):
            for name, x in tensors.items():
                x.grad = torch.from_numpy(grads[name].copy())
            optimizer.step()
            for name, x in tensors.items():
                if t in STORED:
                    moved = x.detach().numpy().astype(np.float64) - first[name]
                    rows[name].append(moved.astype(np.float32))
    assert all(np.isfinite(x).all() for x in rows.values())
    return {name: np.stack(x) for name, x in rows.items()}


def main(names: list[str]) -> None:
    """Run these and store them; by default all."""
    for name in names or PEERS:
        rows = run(PEERS[name])
        DATA.mkdir(exist_ok=True)
        named: Any = {k.replace("/", "|"): x for k, x in rows.items()}
        np.savez(DATA / f"{name}.npz", **named)
        print(name, *(f"{k} {np.linalg.norm(x[-1]):.4g}" for k, x in rows.items()))


if __name__ == "__main__":
    main(sys.argv[1:])
