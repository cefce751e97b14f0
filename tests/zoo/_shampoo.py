"""Shampoo and KL-Shampoo."""

import steepest

from ._row import Row

SHAMPOO = {
    "learning_rate": 0.05,
    "b1": 0.9,
    "b2": 0.95,
    "eps": 1e-3,  # the root of a singular factor amplifies rounding errors
    "weight_decay": 0.01,
    "graft_eps": 1e-8,
}
KL = {k: SHAMPOO[k] for k in ("learning_rate", "b1", "b2", "eps", "weight_decay")}

OPTIMIZERS = [
    Row(
        steepest.shampoo,
        SHAMPOO,
        {"frequency": 2},
        still=False,
        complex=False,
        sharded=False,
        rounding=50,
    ),
    Row(
        steepest.shampoo,
        SHAMPOO,
        {"root": "newton", "graft": "adagrad", "rolled": False, "frequency": 2},
        "newton",
        still=False,
        complex=False,
        sharded=False,
        rounding=50,
    ),
    Row(
        steepest.shampoo,
        KL,
        {"factors": "kl", "frequency": 2},
        "kl",
        still=False,
        complex=False,
        sharded=False,
        rounding=50,
    ),
]

PARTS: list[Row] = []
