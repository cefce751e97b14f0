"""Optimizers of matrices that build on Muon."""

import steepest

from ._row import OURS, Row

MUON = {
    "learning_rate": 0.1,
    "beta": 0.9,
    "weight_decay": 0.01,
    "eps": 1e-8,
    "rms": 0.2,
    "adam_learning_rate": 0.05,
    "adam_b2": 0.95,
}
SCION = {"learning_rate": 0.01, "alpha": 0.1, "radius": 5.0, "sign_radius": 5.0}

OPTIMIZERS = [
    Row(steepest.adamuon, {**MUON, "b2": 0.95}, still=False, of_complex=OURS),
    Row(
        steepest.dion2,
        {**MUON, "adam_eps": 1e-8},
        {"fraction": 0.5},
        still=False,
        of_complex=OURS,
    ),
    Row(steepest.normuon, {**MUON, "b2": 0.95}, still=False, of_complex=OURS),
    Row(
        steepest.normuon,
        {**MUON, "b2": 0.95},
        {"scale": "original", "routes": {"w": "out in"}},
        "rows",
        still=False,
        of_complex=OURS,
    ),
    Row(
        steepest.scion,
        SCION,
        scale_free=True,
        still=False,
        of_complex=OURS,
        steep={"learning_rate": 2e-3},
    ),
    Row(
        steepest.scion,
        SCION,
        {"constrained": False, "routes": {"w": "colnorm"}},
        "unconstrained",
        scale_free=True,
        rotates=True,
        of_complex=OURS,
        steep={"learning_rate": 2e-3},
    ),
]

PARTS = [
    Row(
        steepest.scale_by_lmo,
        {"alpha": 0.1, "eps": 1e-8},
        {"norm": "rms"},
        optimizer=False,
        scale_free=True,
        rotates=True,
        of_complex=OURS,
    ),
]
