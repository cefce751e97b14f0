"""The basic optimizers."""

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


def _clipped_adamw(
    max_norm: Any, learning_rate: Any, weight_decay: Any
) -> steepest.GradientTransformation:
    clip = steepest.clip_by_global_norm(max_norm)
    adamw = steepest.adamw(learning_rate, weight_decay=weight_decay)
    return steepest.chain(clip, steepest.chain(steepest.identity(), adamw))


def _few(p: Any) -> Any:
    return jax.tree.map(lambda x: x.ndim < 2, p)


def _masked_adam(learning_rate: Any, rest: Any) -> steepest.GradientTransformation:
    return steepest.chain(
        steepest.masked(steepest.adam(learning_rate), _many),
        steepest.masked(steepest.sgd(rest), _few),
    )


def _clipped_late(learning_rate: Any, max_norm: Any) -> steepest.GradientTransformation:
    return steepest.named_chain(
        ("adam", steepest.scale_by_adam()),
        ("clip", steepest.clip_by_global_norm(max_norm)),
        ("learning_rate", steepest.scale_by_learning_rate(learning_rate)),
    )


ADAM = {"learning_rate": 0.1, "b1": 0.9, "b2": 0.999, "eps": 1e-8, "eps_root": 0.0}
ADAMW = {**ADAM, "weight_decay": 1e-4}
LION = {"learning_rate": 0.02, "b1": 0.9, "b2": 0.99, "weight_decay": 1e-3}
SGD = {"learning_rate": 0.1}
HEAVY = {**SGD, "momentum": 0.9}
GENTLY = {"learning_rate": 5e-4}

OPTIMIZERS = [
    Row(steepest.adam, ADAM, scale_free=True),
    Row(steepest.adam, ADAM, {"nesterov": True}, "nesterov", scale_free=True),
    Row(steepest.adam, {"b1": 0.9}, {"learning_rate": _falling}, "scheduled"),
    Row(steepest.adamw, ADAMW, still=False),
    Row(steepest.adamw, ADAMW, {"mask": _many}, "masked", still=False),
    Row(steepest.nadam, ADAM, scale_free=True),
    Row(steepest.nadamw, ADAMW, still=False),
    Row(steepest.lion, LION, still=False),
    Row(
        steepest.nag,
        {"learning_rate": 0.05, "momentum": 0.9},
        rotates=True,
        steep=GENTLY,
        of_complex="split",
    ),
    Row(steepest.sgd, SGD, linear=True, rotates=True, steep=GENTLY),
    Row(steepest.sgd, HEAVY, {}, "momentum", linear=True, steep=GENTLY),
    Row(steepest.sgd, HEAVY, {"nesterov": True}, "nesterov", linear=True, steep=GENTLY),
    Row(
        _clipped_adamw,
        {"max_norm": 1.0, "learning_rate": 0.1, "weight_decay": 1e-4},
        still=False,
        of_complex=OURS,
    ),
    Row(_clipped_late, {"learning_rate": 0.1, "max_norm": 1.0}, of_complex=OURS),
    Row(
        _masked_adam,
        {"learning_rate": 0.1, "rest": 0.1},
        steep={"rest": 0.005},
        of_complex=OURS,
    ),
]

PARTS = [
    Row(steepest.add_decayed_weights, {"weight_decay": 0.1}, optimizer=False),
    Row(
        steepest.add_decayed_weights,
        {},
        {"weight_decay": _falling, "mask": _many},
        "scheduled",
        optimizer=False,
        partial=True,
    ),
    Row(steepest.clip, {"max_delta": 1.0}, optimizer=False, complex=False),
    Row(steepest.clip_by_global_norm, {"max_norm": 1.0}, optimizer=False),
    Row(steepest.identity, {}, optimizer=False, linear=True, partial=True),
    Row(steepest.scale, {"step_size": 2.0}, optimizer=False, linear=True),
    Row(steepest.scale_by_adam, {"b1": 0.9, "b2": 0.99}, optimizer=False),
    Row(
        steepest.scale_by_learning_rate,
        {"learning_rate": 0.1},
        {"flip_sign": False},
        optimizer=False,
        linear=True,
    ),
    Row(steepest.scale_by_lion, {"b1": 0.9, "b2": 0.99}, optimizer=False),
    Row(
        steepest.scale_by_lion,
        {"b1": 0.9, "b2": 0.99, "smooth_beta": 2.0},
        {"mode": "smooth"},
        "smooth",
        optimizer=False,
    ),
    Row(
        steepest.scale_by_lion,
        {"b1": 0.9, "b2": 0.99},
        {"mode": "refined"},
        "refined",
        optimizer=False,
        complex=False,
    ),
    Row(
        steepest.scale_by_schedule,
        {},
        {"step_size_fn": _falling},
        optimizer=False,
        linear=True,
    ),
    Row(steepest.set_to_zero, {}, optimizer=False, linear=True, constant=True),
    Row(steepest.trace, {"decay": 0.9}, optimizer=False, linear=True),
]
