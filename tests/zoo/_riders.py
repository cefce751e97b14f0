"""Wrappers that change the gradient, the step or the params of any optimizer."""

from typing import Any

import jax
import jax.numpy as jnp

import steepest

from ._row import OURS, Row


def _many(p: Any) -> Any:
    """A mask: the leaves with two or more axes."""
    return jax.tree.map(lambda x: x.ndim > 1, p)


def _falling(count: Any) -> Any:
    return 0.1 / jnp.sqrt(1 + count.astype(float))


def _labels(p: Any) -> Any:
    return jax.tree.map(lambda x: "many" if x.ndim > 1 else "few", p)


def _cautious_adamw(
    learning_rate: Any, weight_decay: Any, floor: Any
) -> steepest.GradientTransformation:
    adam = steepest.scale_by_adam()
    return steepest.chain(
        steepest.cautious(adam, descent=False, floor=floor),
        steepest.add_cautious_weight_decay(weight_decay),
        steepest.scale_by_learning_rate(learning_rate),
    )


def _mars_adamw(
    learning_rate: Any, weight_decay: Any, **options: Any
) -> steepest.GradientTransformation:
    return steepest.chain(
        steepest.mars(steepest.scale_by_adam(0.95, 0.99), **options),
        steepest.add_decayed_weights(weight_decay),
        steepest.scale_by_learning_rate(learning_rate),
    )


def _hyperball_of_matrices(
    learning_rate: Any, rest: Any, radius: str
) -> steepest.GradientTransformation:
    """`hyperball`, which takes only matrices."""
    adam = steepest.scale_by_adam(0.9, 0.95)
    held = steepest.hyperball(adam, learning_rate, radius=radius)
    few = steepest.adam(rest)
    return steepest.partition({"many": held, "few": few}, _labels)


HELD = {"learning_rate": 0.05, "adam_learning_rate": 0.05}
MARS = {"gamma": 0.025, "b1": 0.95, "max_norm": 1.0}

OPTIMIZERS = [
    Row(
        steepest.adam_h,
        {**HELD, "b1": 0.9, "b2": 0.95, "eps": 1e-8},
        of_complex=OURS,
        confined=True,
    ),
    Row(
        steepest.muon_h,
        {**HELD, "beta": 0.9, "eps": 1e-8},
        of_complex=OURS,
        confined=True,
    ),
    Row(
        _hyperball_of_matrices,
        {"learning_rate": 0.05, "rest": 0.05},
        {"radius": "now"},
        of_complex=OURS,
        confined=True,
    ),
    Row(
        steepest.cautious,
        {"floor": 1e-3},
        {"inner": steepest.adam(0.1)},
        scale_free=True,
        of_complex=OURS,
    ),
    Row(
        _cautious_adamw,
        {"learning_rate": 0.1, "weight_decay": 1e-2, "floor": 0.1},
        still=False,
        of_complex=OURS,
    ),
    Row(steepest.mars, MARS, {"inner": steepest.adam(0.1)}, of_complex=OURS),
    Row(
        _mars_adamw,
        {"learning_rate": 0.1, "weight_decay": 1e-2, "gamma": 0.1},
        {"max_norm": None, "g_prev_dtype": "float16"},
        still=False,
        of_complex=OURS,
    ),
]

PARTS = [
    Row(
        steepest.add_cautious_weight_decay,
        {"weight_decay": 0.1},
        optimizer=False,
        of_complex=OURS,
    ),
    Row(
        steepest.add_cautious_weight_decay,
        {},
        {"weight_decay": _falling, "mask": _many},
        "scheduled",
        optimizer=False,
        partial=True,
        of_complex=OURS,
    ),
]
