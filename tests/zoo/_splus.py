"""Optimizers that work in an eigenbasis and take signs or polar factors there."""

import steepest

from ._row import OURS, Row

SPLUS = {
    "learning_rate": 0.1,
    "b1": 0.9,
    "b2": 0.99,
    "weight_decay": 0.01,
    "ema_decay": 0.9,
    "adam_learning_rate": 0.05,
}
SOAP_MUON = {
    "learning_rate": 0.1,
    "beta": 0.9,
    "b2": 0.9,
    "eps": 1e-8,
    "weight_decay": 0.01,
    "rms": 0.2,
    "adam_learning_rate": 0.05,
}

OPTIMIZERS = [
    Row(
        steepest.soap_muon,
        SOAP_MUON,
        elementwise=False,
        still=False,
        complex=False,
        of_complex=OURS,
        sharded=False,
        rounding=100,
    ),
    Row(
        steepest.splus,
        SPLUS,
        {"frequency": 2},
        elementwise=False,
        still=False,
        complex=False,
        of_complex=OURS,
        sharded=False,
        rounding=100,
    ),
    Row(
        steepest.splus,
        SPLUS,
        # The factor of the longer side has a zero eigenvalue in the first step, and
        # its eigenvectors depend on rounding errors.
        {"rolled": False, "longest": 2},
        "paper",
        elementwise=False,
        still=False,
        complex=False,
        of_complex=OURS,
        sharded=False,
        rounding=1000,
    ),
]

PARTS = [
    Row(
        steepest.ema_params,
        {"decay": 0.9},
        optimizer=False,
        linear=True,
        of_complex=OURS,
    ),
]
