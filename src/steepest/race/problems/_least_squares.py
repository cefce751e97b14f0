"""Least squares, where some directions are much steeper than others."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._problem import Problem

Params = Float[Array, " columns"]
Equations = dict[str, Array]

_ROWS, _COLUMNS = 60, 30
_CONDITION = 1e5  # the steepest curvature over the flattest


def least_squares() -> Problem:
    """Least squares of condition 100000: 60 equations for 30 unknowns.

    The equations are always the same, and every step sees all of them; the seed decides
    where to start. The metric is how far the loss is above the least one.
    """
    return Problem(
        init=lambda key: jax.random.normal(key, (_COLUMNS,), jnp.float32),
        loss=lambda params, batch: _half_square(batch["a"], params, batch["b"]),
        metric=_excess,
        data=_equations(),
        name="least_squares",
        about="Least squares with a condition number of 100000, all equations at once.",
        measure="excess loss",
        better="lower",
        target=1e-4,
        steps=3000,
        optimizers=(
            "sgd",
            "sgd(momentum=0.9)",
            "sgd(momentum=0.99, nesterov=True)",
            "adam",
            "adagrad",
            "rprop",
            "schedule_free_adamw",
            "lbfgs",
        ),
        learning_rates=(3e-3, 1e-2, 3e-2, 1e-1, 3e-1, 1.0, 3.0, 10.0),
    )


def _equations() -> dict[str, np.ndarray]:
    """`a x = b`, nearly: `best` leaves a rest that no column of `a` can lessen."""
    random = np.random.default_rng(0)
    rows, _ = np.linalg.qr(random.normal(size=(_ROWS, _COLUMNS + 1)))
    columns, _ = np.linalg.qr(random.normal(size=(_COLUMNS, _COLUMNS)))
    lengths = np.geomspace(1, _CONDITION**-0.5, _COLUMNS)
    a = (rows[:, :-1] * lengths) @ columns
    best = random.normal(size=_COLUMNS)
    b = a @ best + 0.1 * rows[:, -1]
    found = {"a": a, "b": b, "best": best}
    return {name: x.astype(np.float32) for name, x in found.items()}


def _half_square(a: Array, x: Params, b: Array) -> Float[Array, ""]:
    return 0.5 * jnp.sum((jnp.matmul(a, x, precision="highest") - b) ** 2)


def _excess(params: Params, data: Equations) -> Float[Array, ""]:
    """The loss less the least one: `|a (x - best)|^2 / 2`, with no digit lost."""
    return _half_square(data["a"], params - data["best"], jnp.zeros_like(data["b"]))
