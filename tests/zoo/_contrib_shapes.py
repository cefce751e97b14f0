"""Optimizers of `contrib` that depend on shapes, or wrap another optimizer."""

from typing import Any

import jax

import steepest
from steepest import contrib

from ._row import OURS, PRODUCT, Row, SQUARED


def _matrices(p: Any) -> Any:
    return jax.tree.map(lambda x: x.ndim == 2, p)


def _muon_of_matrices(beta: Any, eps: Any, **options: Any) -> Any:
    """`scale_by_muon`, which takes only matrices."""
    tx = contrib.scale_by_muon(beta=beta, eps=eps, **options)
    return steepest.masked(tx, _matrices)


def _pairs(p: Any) -> Any:
    """Dimension numbers for all leaves with two axes."""
    pair = contrib.MuonDimensionNumbers(-2, -1)
    return jax.tree.map(lambda x: pair if x.ndim > 1 else None, p)


CLIMB = steepest.chain(contrib.normalize(), steepest.sgd(0.05))
MUON = {"learning_rate": 0.05, "beta": 0.9, "eps": 1e-8, "adam_b2": 0.99}

OPTIMIZERS = [
    Row(contrib.muon, MUON, rounding=50),
    Row(
        contrib.muon,
        {**MUON, "consistent_rms": 0.5},
        {
            "muon_weight_dimension_numbers": _pairs,
            "preconditioning": "aol",
            "ns_steps": 2,
        },
        "numbers",
        explicit=False,
        of_complex="Optax does not conjugate",
        rounding=50,
    ),
    Row(
        contrib.galore,
        {"learning_rate": 0.1, "scale": 1.0},
        {"rank": 1, "update_proj_gap": 2},
        of_complex="Optax does not conjugate",
    ),
    Row(
        contrib.mechanize,
        {"weight_decay": 0.01, "eps": 1e-8, "s_init": 0.01},
        {"base_optimizer": steepest.adam(1.0)},
        of_complex=PRODUCT,
    ),
    Row(
        contrib.schedule_free,
        {"learning_rate": 0.1, "b1": 0.9, "weight_lr_power": 2.0},
        {"base_optimizer": steepest.adam(0.1, b1=0.0)},
    ),
    Row(
        contrib.schedule_free_adamw,
        {"learning_rate": 0.1, "b1": 0.9, "b2": 0.99, "weight_decay": 1e-4},
        {"warmup_steps": 3},
        of_complex=SQUARED,
    ),
    Row(
        contrib.schedule_free_sgd,
        {"learning_rate": 0.3, "b1": 0.9, "weight_lr_power": 2.0},
        linear=True,
        steep={"learning_rate": 2e-3},
    ),
    Row(
        contrib.sam,
        {},
        {"optimizer": steepest.adam(0.1), "adv_optimizer": CLIMB},
        rounds=True,
    ),
]

PARTS = [
    Row(
        _muon_of_matrices,
        {"beta": 0.9, "eps": 1e-8},
        {"preconditioning": "spectral", "adaptive": True, "ns_steps": 2},
        "spectral",
        optimizer=False,
        of_complex=OURS,
        partial=True,
        rounding=50,
    ),
    Row(
        _muon_of_matrices,
        {"beta": 0.9, "eps": 1e-8},
        {"preconditioning": "schatten", "ns_coeffs": "dion", "nesterov": False},
        "schatten",
        optimizer=False,
        of_complex=OURS,
        partial=True,
        rounding=50,
    ),
    Row(contrib.normalize, {}, optimizer=False, rotates=True),
    Row(
        contrib.reduce_on_plateau,
        {"factor": 0.5, "rtol": 1e-4, "atol": 0.0, "min_scale": 0.1},
        {"patience": 1, "cooldown": 1},
        optimizer=False,
        wants=("value",),
    ),
]
