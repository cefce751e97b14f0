"""Wrappers around transformations."""

from typing import Any

import jax

import steepest

from ._row import OURS, Row


def _labels(p: Any) -> Any:
    return jax.tree.map(lambda x: "many" if x.ndim > 1 else "few", p)


def _odd(step: Any) -> Any:
    return step % 2 == 0


def _partition(learning_rate: Any, rest: Any) -> steepest.GradientTransformation:
    adam, sgd = steepest.adam(learning_rate), steepest.sgd(rest)
    return steepest.partition({"many": adam, "few": sgd}, _labels)


def _inject(learning_rate: Any, b1: Any) -> steepest.GradientTransformation:
    return steepest.inject_hyperparams(steepest.adam)(learning_rate, b1)


def _multi_steps(learning_rate: Any) -> steepest.GradientTransformation:
    adam = steepest.adam(learning_rate)
    return steepest.MultiSteps(adam, 2).gradient_transformation()


def _apply_if_finite(learning_rate: Any) -> steepest.GradientTransformation:
    return steepest.apply_if_finite(steepest.adam(learning_rate), 3)


def _conditionally_mask(learning_rate: Any) -> steepest.GradientTransformation:
    return steepest.conditionally_mask(steepest.adam(learning_rate), _odd)


def _flatten(learning_rate: Any) -> steepest.GradientTransformation:
    return steepest.flatten(steepest.adam(learning_rate))


def _route(learning_rate: Any, rest: Any) -> steepest.GradientTransformation:
    adam, sgd = steepest.adam(learning_rate), steepest.sgd(rest)
    return steepest.route({"w|^$": adam, ".*": sgd})


def _guard(learning_rate: Any, sigmas: Any, margin: Any) -> Any:
    adamw = steepest.adamw(learning_rate)
    return steepest.guard(adamw, sigmas=sigmas, margin=margin, window=8)


OPTIMIZERS = [
    Row(_apply_if_finite, {"learning_rate": 0.1}, of_complex=OURS),
    Row(_conditionally_mask, {"learning_rate": 0.1}, of_complex=OURS),
    Row(_flatten, {"learning_rate": 0.1}, sharded=False, of_complex=OURS),
    Row(
        _guard,
        {"learning_rate": 0.1, "sigmas": 6.0, "margin": 0.1},
        still=False,
        of_complex=OURS,
    ),
    Row(_inject, {"learning_rate": 0.1, "b1": 0.9}, of_complex=OURS),
    Row(_multi_steps, {"learning_rate": 0.1}, of_complex=OURS, rounds=True),
    Row(
        _partition,
        {"learning_rate": 0.1, "rest": 0.1},
        steep={"rest": 0.005},
        of_complex=OURS,
    ),
    Row(
        _route,
        {"learning_rate": 0.1, "rest": 0.1},
        steep={"rest": 0.005},
        of_complex=OURS,
    ),
]

PARTS: list[Row] = []
