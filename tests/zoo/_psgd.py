"""PSGD, with factors fitted by products or by triangular solves."""

import steepest

from ._row import OURS, Row

ADAM = {"adam_learning_rate": 0.05, "adam_b2": 0.95}
PSGD = {
    "learning_rate": 0.1,
    "b1": 0.9,
    "weight_decay": 0.01,
    "fit_rate": 0.1,
    "first_fit_rate": 0.5,
    "damping": 1e-9,
    "rms": 0.2,
    **ADAM,
}
KRON = {
    "learning_rate": 0.1,
    "b1": 0.9,
    "weight_decay": 0.01,
    "fit_rate": 0.1,
    "damping": 1e-9,
    "rms": 0.2,
    **ADAM,
}

OPTIMIZERS = [
    Row(
        steepest.psgd,
        PSGD,
        {"frequency": 2},
        still=False,
        complex=False,
        sharded=False,
        of_complex=OURS,
    ),
    Row(
        steepest.kron,
        KRON,
        still=False,
        elementwise=False,
        complex=False,
        sharded=False,
        of_complex=OURS,
    ),
]

PARTS = [
    Row(
        steepest.scale_by_psgd,
        {"b1": 0.9, "fit_rate": 0.1},
        {"whiten": "gradient", "rolled": False, "frequency": 3, "max_skew": 4.0},
        optimizer=False,
        complex=False,
        sharded=False,
        of_complex=OURS,
    ),
    Row(
        steepest.scale_by_kron,
        {"b1": 0.9, "fit_rate": 0.1},
        {"rolled": True, "frequency": 2},
        optimizer=False,
        elementwise=False,
        complex=False,
        sharded=False,
        of_complex=OURS,
    ),
]
