"""Runs of other packages: what ran, with which arguments, on which gradients.

`_run` makes them, in an environment that has the packages, and stores how far each
parameter moved. `_ours` says which of our optimizers must move the same way. The
gradients are given, not computed, so that a rounding error does not grow.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

DATA = Path(__file__).parent / "data"
STEPS = 40
STORED = (1, 2, 3, 5, 10, 20, 40)  # after which steps `_run` stores the movement

# In torch's layout: a `Linear` stores (out, in). Ours has the transpose.
SQUARE = {"square/kernel": (16, 16), "square/bias": (16,)}
KERNEL = {"square/kernel": (16, 16)}
SIDES = {"tall/kernel": (12, 8), "wide/kernel": (8, 12), "wide/bias": (8,)}
KERNELS = {"tall/kernel": (12, 8), "wide/kernel": (8, 12)}


@dataclass(frozen=True)
class Peer:
    """A run of another package."""

    package: str  # as in `_drivers.DRIVERS`
    optimizer: str
    arguments: dict[str, Any]
    shapes: dict[str, tuple[int, ...]] = field(default_factory=lambda: SQUARE)
    # What was replaced in the package to make the run exact: see `_patches`.
    patches: tuple[str, ...] = ("wide",)
    # |ours - theirs| / |theirs|, of the movement of a leaf, in Frobenius norm
    tolerance: float = 1e-6

    @property
    def dtype(self) -> str:
        """What the package computed in."""
        return "float64" if "wide" in self.patches else "float32"


def start(peer: Peer) -> dict[str, np.ndarray]:
    """The parameters before the first step."""
    random = np.random.default_rng(0)
    return {
        name: random.normal(size=shape).astype(peer.dtype)
        for name, shape in peer.shapes.items()
    }


def gradients(peer: Peer) -> list[dict[str, np.ndarray]]:
    """The gradient of each step: signal and noise, with gaps between the eigenvalues.

    A matrix is `U D (S + N) D V^T`: `U`, `V` orthogonal, `D` diagonal with elements that
    fall by a fifth, `S` fixed and `N` noise. Its norm varies about 1 from step to step.
    """
    random = np.random.default_rng(1)
    parts = {
        name: [
            (np.linalg.qr(random.normal(size=(d, d)))[0], 0.8 ** np.arange(d))
            for d in shape
        ]
        for name, shape in peer.shapes.items()
    }
    signal = {name: random.normal(size=s) for name, s in peer.shapes.items()}

    def draw(name: str, shape: tuple[int, ...]) -> np.ndarray:
        size = 0.3 * np.exp(0.5 * random.normal())
        x = size * (random.normal(size=shape) + 0.7 * signal[name])
        if len(shape) == 2:
            (u, left), (v, right) = parts[name]
            x = (u * left) @ x @ (v * right).T
        return x.astype(peer.dtype)

    return [
        {name: draw(name, shape) for name, shape in peer.shapes.items()}
        for _ in range(STEPS)
    ]


def movements(name: str) -> dict[str, np.ndarray]:
    """Of each parameter, one row for each of `STORED`: how far it is from its start."""
    with np.load(DATA / f"{name}.npz") as file:
        return {k.replace("|", "/"): file[k].astype(np.float64) for k in file}


_SOAP = {"lr": 0.02, "betas": (0.9, 0.95), "eps": 1e-8, "weight_decay": 0.0}

PEERS = {
    "soap_f1": Peer(
        "pytorch_optimizer", "SOAP", {**_SOAP, "precondition_frequency": 1}
    ),
    "soap_f10": Peer(
        "pytorch_optimizer", "SOAP", {**_SOAP, "precondition_frequency": 10}
    ),
    "soap_decay": Peer(
        "pytorch_optimizer",
        "SOAP",
        {**_SOAP, "precondition_frequency": 10, "weight_decay": 0.1},
    ),
    "soap_shampoo_beta": Peer(
        "pytorch_optimizer",
        "SOAP",
        {**_SOAP, "precondition_frequency": 2, "shampoo_beta": 0.8, "eps": 1e-3},
    ),
}
