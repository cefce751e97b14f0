"""SOAP."""

import steepest

from ._row import Row

SOAP = {
    "learning_rate": 0.05,
    "b1": 0.9,
    "b2": 0.95,
    "eps": 1e-8,
    "weight_decay": 0.01,
}
FLAGS = {"still": False, "complex": False, "sharded": False, "rounding": 50}

OPTIMIZERS = [
    Row(steepest.soap, SOAP, {"frequency": 2}, **FLAGS),
    Row(
        steepest.soap,
        SOAP,
        {"frequency": 2, "rolled": False, "one_sided": True},
        "paper",
        **FLAGS,
    ),
    Row(
        steepest.soap,
        {**SOAP, "factor_beta": 0.9},
        {"frequency": 1, "fresh": True, "basis": "rotation"},
        "fresh",
        **FLAGS,
    ),
]

PARTS: list[Row] = []
