"""Runs that begin in torch and go on in steepest, and the other way around.

Each has the arguments of the torch optimizer and the transformation that equals it. The
gradients are given, not computed, so that a rounding error does not grow.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import jax.numpy as jnp
import numpy as np

import steepest
from steepest import add_decayed_weights, chain

STEPS, MOVE = 10, 5  # the number of steps, and after how many the run moves
# torch's parameters in its order; a `Linear` stores (out, in).
SHAPES = {"first.weight": (3, 4), "first.bias": (3,), "second.weight": (3, 3)}
NAMES = {
    "first.weight": "first/kernel",
    "first.bias": "first/bias",
    "second.weight": "second/kernel",
}
TRANSPOSE = "kernel"


@dataclass(frozen=True)
class Case:
    """A run."""

    optimizer: str  # in `torch.optim`
    arguments: dict[str, Any]
    make: Callable[[], steepest.GradientTransformationExtraArgs]
    rate: Callable[[int], float] | None = None  # the step -> lr
    matrices: bool = False  # without the bias
    wide: bool = False  # torch's Newton-Schulz in float32 instead of bfloat16
    # The largest difference of a param, over the largest movement after the move.
    tolerance: float = 2e-5
    more: dict[str, Any] = field(default_factory=dict)  # for `from_torch`

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        return {k: x for k, x in SHAPES.items() if len(x) == 2 or not self.matrices}

    @property
    def names(self) -> list[str]:
        """The paths in torch's order."""
        return [NAMES[k] for k in self.shapes]


_LINEAR = steepest.linear_schedule(0.02, 0.01, STEPS)


def _linear(t: int) -> float:
    """The same, for torch."""
    return 0.02 - 0.001 * t


def _muon(**more: Any) -> Any:
    fixed = {"eps": 1e-7, "coefficients": "standard", "scale": "original"}
    routes = {"kernel": "muon"}
    return steepest.muon(0.02, weight_decay=0.1, routes=routes, **{**fixed, **more})


_RMS = {"lr": 0.02, "alpha": 0.9}

CASES = {
    "sgd": Case(
        "SGD",
        {"lr": 0.1, "weight_decay": 0.1},
        lambda: chain(add_decayed_weights(0.1), steepest.sgd(0.1)),
    ),
    "sgd_momentum": Case(
        "SGD",
        {"lr": 0.1, "momentum": 0.9},
        lambda: steepest.sgd(0.1, momentum=0.9),
    ),
    "sgd_nesterov": Case(
        "SGD",
        {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.1},
        lambda: chain(
            add_decayed_weights(0.1), steepest.sgd(0.1, momentum=0.9, nesterov=True)
        ),
    ),
    "sgd_dampening": Case(
        "SGD",
        {"lr": 0.1, "momentum": 0.9, "dampening": 0.25},
        lambda: steepest.sgd(0.075, momentum=0.9),
    ),
    "sgd_schedule": Case(
        "SGD",
        {"lr": 0.02, "momentum": 0.9},
        lambda: steepest.sgd(_LINEAR, momentum=0.9),
        rate=_linear,
        more={"count": MOVE},
    ),
    "adam": Case("Adam", {"lr": 0.02}, lambda: steepest.adam(0.02)),
    "adam_l2": Case(
        "Adam",
        {"lr": 0.02, "betas": (0.8, 0.9), "eps": 1e-3, "weight_decay": 0.1},
        lambda: chain(add_decayed_weights(0.1), steepest.adam(0.02, 0.8, 0.9, 1e-3)),
    ),
    "adamw": Case(
        "AdamW",
        {"lr": 0.02, "weight_decay": 0.1},
        lambda: steepest.adamw(0.02, weight_decay=0.1),
    ),
    "adamw_schedule": Case(
        "AdamW",
        {"lr": 0.02, "weight_decay": 0.1},
        lambda: steepest.adamw(_LINEAR, weight_decay=0.1),
        rate=_linear,
    ),
    "rmsprop": Case(
        "RMSprop",
        {**_RMS, "eps": 1e-2, "weight_decay": 0.1},
        lambda: chain(
            add_decayed_weights(0.1),
            steepest.rmsprop(0.02, 0.9, 1e-2, eps_in_sqrt=False),
        ),
    ),
    "rmsprop_momentum": Case(
        "RMSprop",
        {**_RMS, "momentum": 0.9},
        lambda: steepest.rmsprop(0.02, eps_in_sqrt=False, momentum=0.9),
    ),
    "rmsprop_centered": Case(
        "RMSprop",
        {**_RMS, "momentum": 0.5, "centered": True},
        lambda: steepest.rmsprop(0.02, eps_in_sqrt=False, momentum=0.5, centered=True),
    ),
    "rmsprop_schedule": Case(
        "RMSprop",
        {**_RMS, "momentum": 0.9},
        lambda: chain(
            steepest.scale_by_rms(0.9, 1e-8, eps_in_sqrt=False),
            steepest.trace(0.9),
            steepest.scale_by_learning_rate(_LINEAR),
        ),
        rate=_linear,
    ),
    "adagrad": Case(
        "Adagrad",
        {"lr": 0.1, "weight_decay": 0.1, "initial_accumulator_value": 0.5},
        lambda: chain(add_decayed_weights(0.1), steepest.adagrad(0.1, 0.5, 0.0)),
    ),
    "adagrad_lr_decay": Case(
        "Adagrad",
        {"lr": 0.1, "lr_decay": 0.5},
        lambda: steepest.adagrad(lambda t: 0.1 / (1 + 0.5 * t.astype(float)), 0.0, 0.0),
    ),
    "nadam": Case(
        "NAdam",
        {"lr": 0.02, "momentum_decay": 1000.0},
        lambda: steepest.nadam(0.02),
    ),
    "nadamw": Case(
        "NAdam",
        {
            "lr": 0.02,
            "momentum_decay": 1000.0,
            "weight_decay": 0.1,
            "decoupled_weight_decay": True,
        },
        lambda: steepest.nadamw(0.02, weight_decay=0.1),
    ),
    # torch computes `r` in float64. In float32 it loses digits right after step 6, from
    # which on the mean square is used; with JAX_ENABLE_X64 the difference is 1e-5.
    "radam": Case("RAdam", {"lr": 0.02}, lambda: steepest.radam(0.02), tolerance=1e-2),
    "muon": Case(
        "Muon",
        {"lr": 0.02, "weight_decay": 0.1},
        _muon,
        matrices=True,
        wide=True,
        tolerance=1e-4,
    ),
    "muon_rms": Case(
        "Muon",
        {"lr": 0.02, "nesterov": False, "adjust_lr_fn": "match_rms_adamw"},
        lambda: _muon(nesterov=False, scale="rms"),
        matrices=True,
        wide=True,
        tolerance=1e-4,
    ),
    # torch computes the polynomials in bfloat16, so an update is within 2%.
    "muon_bfloat16": Case(
        "Muon",
        {"lr": 0.02, "weight_decay": 0.1},
        _muon,
        matrices=True,
        tolerance=2e-2,
    ),
}


def start(case: Case) -> dict[str, np.ndarray]:
    """The values of torch's parameters before the first step."""
    random = np.random.default_rng(0)
    draw = lambda shape: random.normal(size=shape).astype(np.float32)
    return {name: draw(shape) for name, shape in case.shapes.items()}


def gradients(case: Case) -> list[dict[str, np.ndarray]]:
    """The gradient of each step: signal and noise, of different sizes."""
    random = np.random.default_rng(1)
    draw = lambda shape: random.normal(size=shape) + 0.5
    return [
        {k: draw(shape).astype(np.float32) for k, shape in case.shapes.items()}
        for _ in range(STEPS)
    ]


def ours(values: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Arrays by torch's names as a tree of Flax, with kernels of (in, out)."""
    tree: dict[str, dict[str, Any]] = {}
    for name, x in values.items():
        layer, leaf = NAMES[name].split("/")
        x = jnp.asarray(np.asarray(x, np.float32))
        tree.setdefault(layer, {})[leaf] = x.T if x.ndim == 2 else x
    return tree
