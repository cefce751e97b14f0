"""Optimizers with a small state: one number per row, or moments of low rank."""

from typing import Any

import jax

import steepest

from ._row import OURS, Row


def _matrices(p: Any) -> Any:
    return jax.tree.map(lambda x: x.ndim == 2, p)


def _apollo_of_matrices(**options: Any) -> Any:
    """`scale_by_apollo`, which takes only matrices."""
    return steepest.masked(steepest.scale_by_apollo(**options), _matrices)


def _fira_of_matrices(**options: Any) -> Any:
    """`scale_by_fira`, which takes only matrices."""
    return steepest.masked(steepest.scale_by_fira(**options), _matrices)


MOMENTS = {"b1": 0.9, "b2": 0.99, "eps": 1e-6}
SMALL = {"learning_rate": 0.1, **MOMENTS, "weight_decay": 0.01, "growth": 1.5}
SMALL |= {"adam_b2": 0.99}

OPTIMIZERS = [
    Row(
        steepest.adam_mini,
        {"learning_rate": 0.1, "b1": 0.9, "b2": 0.99, "eps": 1e-8},
        scale_free=True,
        of_complex=OURS,
    ),
    Row(
        steepest.adam_mini,
        {"learning_rate": 0.1, "weight_decay": 0.01},
        {"routes": {"w": "head in", "b": "adam"}},
        "heads",
        still=False,
        of_complex=OURS,
    ),
    Row(
        steepest.apollo,
        {**SMALL, "scale": 1.0},
        {"rank": 2, "update_proj_gap": 2},
        still=False,
        of_complex=OURS,
    ),
    Row(
        steepest.apollo_mini,
        {**SMALL, "scale": 2.0},
        {"update_proj_gap": 2},
        still=False,
        of_complex=OURS,
    ),
    Row(
        steepest.fira,
        SMALL,
        {"rank": 1, "update_proj_gap": 2},
        still=False,
        of_complex=OURS,
    ),
]

PARTS = [
    Row(
        steepest.scale_by_adam_mini,
        {"b1": 0.9, "b2": 0.99},
        {"axes": "out in"},
        optimizer=False,
        of_complex=OURS,
    ),
    Row(
        _apollo_of_matrices,
        {**MOMENTS, "growth": 1.01},
        {"rank": 1, "seed": 3, "scale_type": "tensor"},
        optimizer=False,
        of_complex=OURS,
        partial=True,
    ),
    Row(
        _fira_of_matrices,
        {**MOMENTS, "growth": 1.01},
        {"rank": 1},
        optimizer=False,
        of_complex=OURS,
        partial=True,
    ),
]
