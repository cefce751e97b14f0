"""Runs of other packages: what ran, with which arguments, on which gradients.

`_run` makes them, in an environment that has the packages, and stores how far each
parameter moved. `_ours` says which of our optimizers must move the same way. The
gradients are given, not computed, so that a rounding error does not grow.
"""

from dataclasses import dataclass, field, replace
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
# A small transformer. An `embedding` is (vocabulary, width) in both layouts.
PARTS = {
    "embed/embedding": (10, 8),
    "query/kernel": (8, 8),
    "mlp/kernel": (12, 8),
    "mlp/bias": (12,),
    "lm_head/kernel": (10, 8),
}


@dataclass(frozen=True)
class Peer:
    """A run of another package."""

    package: str  # as in `_drivers.DRIVERS`
    optimizer: str
    arguments: dict[str, Any]
    shapes: dict[str, tuple[int, ...]] = field(default_factory=lambda: SQUARE)
    # What was replaced in the package to make the run exact: see `_patches`. In `wide`
    # it computes in float64, so Newton-Schulz and `eigh` do, too.
    patches: tuple[str, ...] = ("wide",)
    gap: float = 0.8  # between the singular values of the gradients
    noise: float = 1.0  # its size in the gradients
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

    A matrix is `U D (S + N) D V^T`: `U` and `V` are orthogonal, `D` has the powers of
    `gap` on its diagonal, `S` is fixed and `N` is noise. The norm varies about 1.
    """
    random = np.random.default_rng(1)
    parts = {
        name: [
            (np.linalg.qr(random.normal(size=(d, d)))[0], peer.gap ** np.arange(d))
            for d in shape
        ]
        for name, shape in peer.shapes.items()
    }
    signal = {name: random.normal(size=s) for name, s in peer.shapes.items()}

    def draw(name: str, shape: tuple[int, ...]) -> np.ndarray:
        size = 0.3 * np.exp(0.5 * random.normal())
        x = peer.noise * random.normal(size=shape)
        x = size * (x + 0.7 * signal[name])
        if len(shape) == 2:
            (u, left), (v, right) = parts[name]
            x = (u * left) @ x @ (v * right).T
        return x.astype(peer.dtype)

    return [
        {name: draw(name, shape) for name, shape in peer.shapes.items()}
        for _ in range(STEPS)
    ]


def normals(rows: int, columns: int, draw: int) -> np.ndarray:
    """The noise that a run with random numbers gets instead of its own."""
    return np.random.default_rng([2, draw]).normal(size=(rows, columns))


def movements(name: str) -> dict[str, np.ndarray]:
    """Of each parameter, one row for each of `STORED`: how far it is from its start."""
    with np.load(DATA / f"{name}.npz") as file:
        return {k.replace("|", "/"): file[k].astype(np.float64) for k in file}


_SOAP = {"lr": 0.02, "betas": (0.9, 0.95), "eps": 1e-8, "weight_decay": 0.0}
_MUON = {"lr": 0.02, "momentum": 0.95, "weight_decay": 0.1}
_ADAM_REST = {"adamw_lr": 0.02, "adamw_betas": (0.9, 0.95), "adamw_wd": 0.1}
_MARS = {
    "lr": 0.02,
    "betas": (0.95, 0.99),
    "gamma": 0.025,
    "weight_decay": 0.1,
    "lr_1d": 0.02,
    "betas_1d": (0.9, 0.95),
    "weight_decay_1d": 0.0,
}
_KL = {"lr": 0.02, "betas": (0.9, 0.95), "eps": 1e-8, "weight_decay": 0.1}
_DION = {"lr": 0.02, "weight_decay": 0.1, "fraction": 0.25, "ef_decay": 0.95}
_SPLUS = {"lr": 0.2, "betas": (0.9, 0.99), "inverse_steps": 10, "foreach": False}
_LOW_RANK = {"rank": 4, "update_proj_gap": 20, "proj_type": "std"}
_ADAMW = {"lr": 0.02, "betas": (0.9, 0.99), "eps": 1e-8, "weight_decay": 0.1}
# These add eps before the bias correction: for Adam's leaves it is as good as none.
_SMALL = {**_ADAMW, "eps": 1e-6, "groups": {"wide/bias": {"eps": 1e-15}}}


def _package(optimizer: str, shapes: Any = SQUARE, **arguments: Any) -> Peer:
    """An optimizer of pytorch_optimizer."""
    return Peer("pytorch_optimizer", optimizer, arguments, shapes)


def _shampoo(root: str, **arguments: Any) -> Peer:
    """Shampoo of facebookresearch/optimizers."""
    usual = {
        "lr": 0.02,
        "betas": (0.9, 0.95),
        "epsilon": 1e-8,
        "max_preconditioner_dim": 12,  # less than 96, or a matrix becomes a vector
        "precondition_frequency": 1,
        "graft": {"beta2": 0.95, "epsilon": 1e-8},
    }
    return Peer("optimizers", "", {"root": root, **usual, **arguments}, SIDES)


def _fresh(**arguments: Any) -> Peer:
    """SOAP that updates the factors first and skips no step, of NVIDIA-NeMo.

    The gradients are such that it never sorts, since it does not sort the mean squares.
    """
    usual = {**_SOAP, "eps": 1e-4, "weight_decay": 0.1, "shampoo_beta": 0.9}
    shapes = {"small/kernel": (4, 4)}
    name = "Emerging-Optimizers"
    return Peer(name, "SOAP", usual | arguments, shapes, gap=0.6, noise=0.3)


PEERS = {
    "soap_f1": _package("SOAP", KERNEL, **_SOAP, precondition_frequency=1),
    "soap_f10": _package("SOAP", KERNEL, **_SOAP, precondition_frequency=10),
    "soap_vector": _package("SOAP", **_SOAP, precondition_frequency=10),
    "soap_decay": _package(
        "SOAP", KERNEL, **{**_SOAP, "weight_decay": 0.1}, precondition_frequency=10
    ),
    "soap_shampoo_beta": _package(
        "SOAP",
        KERNEL,
        **{**_SOAP, "eps": 1e-3},
        precondition_frequency=2,
        shampoo_beta=0.8,
    ),
    "soap_one_sided": _package(
        "SOAP", KERNELS, **_SOAP, precondition_frequency=1, max_precondition_dim=8
    ),
    "soap_fresh": _fresh(),
    "kl_soap_fresh": _fresh(use_kl_shampoo=True),
    "muon": _package("Muon", SIDES, **_MUON, **_ADAM_REST),
    "muon_rms": _package(
        "Muon", SIDES, **_MUON, **_ADAM_REST, use_adjusted_lr=True, nesterov=False
    ),
    "normuon": Peer(
        "NorMuon",
        "SingleDeviceNorMuon",
        {**_MUON, "beta2": 0.95},
        KERNELS,
        tolerance=1e-5,  # it adds 1e-7 to one norm and 1e-10 to the others
    ),
    "normuon_paper": _package(
        "NorMuon",
        KERNELS,
        **_MUON,
        beta2=0.9,
        update_scale="match_rms",
        nesterov=False,
    ),
    "adamuon": _package(
        "AdaMuon", KERNELS, lr=0.02, betas=(0.95, 0.9), weight_decay=0.1
    ),
    "adamuon_paper": replace(
        _package("AdaMuon", KERNELS, lr=0.02, betas=(0.95, 0.9), weight_decay=0.1),
        patches=("wide", "sign"),
    ),
    "scion": Peer(
        "scion",
        "Scion",
        {
            "lr": 0.02,
            "momentum": 0.1,
            "groups": {
                "tall/kernel": {"norm": "Spectral", "scale": 3.0},
                "wide/kernel": {"norm": "Spectral", "scale": 3.0},
                "wide/bias": {"norm": "BiasRMS", "scale": 3.0},
            },
        },
        SIDES,
        tolerance=1e-5,  # it adds 1e-7 to one norm and 1e-8 to the other
    ),
    "scion_unconstrained": Peer(
        "scion",
        "Scion",
        {
            "lr": 0.02,
            "momentum": 0.1,
            "unconstrained": True,
            "groups": {
                "embed/embedding": {
                    "norm": "ColNorm",
                    "norm_kwargs": {"transpose": True},
                },
                "query/kernel": {"norm": "RowNorm"},
                "mlp/kernel": {"norm": "ColNorm", "norm_kwargs": {"normalized": True}},
                "mlp/bias": {"norm": "BiasRMS"},
                "lm_head/kernel": {"norm": "Sign", "scale": 10.0},
            },
        },
        PARTS,
    ),
    "mars": Peer("MARS", "MARS", _MARS, SIDES),
    "mars_first": Peer(
        "MARS",
        "MARS",
        {**_MARS, "optimize_1d": True},
        SIDES,
        patches=("wide", "first_gradient"),
    ),
    "mars_lion": Peer(
        "MARS",
        "MARS",
        {**_MARS, "optimize_1d": True, "mars_type": "mars-lion"},
        SIDES,
        patches=("wide", "first_gradient"),
    ),
    "adam_mini": Peer(
        "adam_mini",
        "Adam_mini",
        {**_ADAMW, "dim": 8, "n_heads": 4, "verbose": False},
        PARTS,
    ),
    "splus": _package("SPlus", **_SPLUS, weight_decay=0.0),
    "splus_decay": _package("SPlus", KERNEL, **_SPLUS, weight_decay=0.1),
    "cautious_adamw": Peer(
        "C-Optim",
        "AdamW",
        {**_ADAMW, "eps": 1e-15, "foreach": False, "no_deprecation_warning": True},
        SIDES,
    ),
    "kl_shampoo_f1": Peer(
        "KL-Methods", "KLOpt", {**_KL, "precondition_frequency": 1}, KERNEL
    ),
    "kl_shampoo_f5": Peer(
        "KL-Methods", "KLOpt", {**_KL, "precondition_frequency": 5}, KERNEL
    ),
    "kl_soap_f1": Peer(
        "KL-Methods",
        "KLOpt",
        {**_KL, "precondition_frequency": 1, "using_klsoap": True},
        KERNEL,
    ),
    "kl_soap_f5": Peer(
        "KL-Methods",
        "KLOpt",
        {**_KL, "precondition_frequency": 5, "using_klsoap": True},
        KERNEL,
    ),
    "fira": Peer(
        "Fira",
        "AdamW",
        {
            **_SMALL,
            "no_deprecation_warning": True,
            "matrices": {**_LOW_RANK, "update_proj_gap": 40, "alpha": 1.0},
        },
        SIDES,
    ),
    "fira_alpha": Peer(
        "Fira",
        "AdamW",
        {
            **_SMALL,
            "no_deprecation_warning": True,
            "matrices": {**_LOW_RANK, "update_proj_gap": 40, "alpha": 0.25},
        },
        SIDES,
    ),
    "apollo": Peer(
        "apollo_torch",
        "AdamW",
        {
            **_SMALL,
            "matrices": {
                **_LOW_RANK,
                "proj": "random",
                "scale": 1.0,
                "scale_type": "channel",
            },
        },
        SIDES,
        patches=("wide", "given_noise"),
    ),
    "apollo_mini": Peer(
        "apollo_torch",
        "AdamW",
        {
            **_SMALL,
            "matrices": {
                **_LOW_RANK,
                "rank": 1,
                "proj": "random",
                "scale": 128.0,
                "scale_type": "tensor",
            },
        },
        SIDES,
        patches=("wide", "given_noise"),
    ),
    "shampoo_eigh": _shampoo("eigh"),
    "shampoo_newton": replace(_shampoo("newton"), tolerance=1e-5),
    "shampoo_late": _shampoo("eigh", precondition_frequency=5, weight_decay=0.1),
    "shampoo_blocks": _shampoo("eigh", max_preconditioner_dim=8),
    "shampoo_sum": _shampoo("eigh", betas=(0.9, 1.0), graft=None),
    "dion2": Peer("dion", "Dion2", _DION, SIDES),
    "dion2_rms": Peer("dion", "Dion2", {**_DION, "adjust_lr": "rms_norm"}, SIDES),
    "psgd_momentum": Peer(
        "psgd_torch",
        "KWNS4",
        {"lr_params": 0.02, "lr_preconditioner": 0.5, "weight_decay": 0.1},
        SIDES,
        patches=("wide", "exact_norm"),
    ),
    "psgd_gradient": Peer(
        "psgd_torch",
        "KWNS4",
        {
            "lr_params": 0.02,
            "lr_preconditioner": 0.1,
            "weight_decay": 0.0,
            "whiten_grad": True,
            "preconditioner_max_skew": 4.0,
        },
        SIDES,
        patches=("wide", "exact_norm"),
    ),
    "kron": Peer(
        "kron_torch",
        "Kron",
        {
            "lr": 0.02,
            "b1": 0.9,
            "weight_decay": 0.1,
            "preconditioner_update_probability": 1.0,
        },
        KERNELS,
        patches=("wide", "given_probe"),
    ),
}
