"""Ill-conditioned least squares."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._problem import Problem

Params = Float[Array, " columns"]
Equations = dict[str, Array]

_ROWS, _COLUMNS = 60, 30
_CONDITION = 1e5  # ratio of the largest to the smallest curvature


def least_squares() -> Problem:
    """Least squares with condition number 100000: 60 equations, 30 unknowns.

    The equations are fixed, and every step sees all of them; the seed decides where to
    start. The metric is the loss above its minimum.
    """
    return Problem(
        init=lambda key: jax.random.normal(key, (_COLUMNS,), jnp.float32),
        loss=lambda params, batch: _half_square(batch["a"], params, batch["b"]),
        metric=_excess,
        data=_equations(),
        name="least_squares",
        about="Full-batch least squares with a condition number of 100000.",
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
    """`a x ~ b`, where the residual of `best` is orthogonal to the columns of `a`."""
    random = np.random.default_rng(0)
    rows, _ = np.linalg.qr(random.normal(size=(_ROWS, _COLUMNS + 1)))
    columns, _ = np.linalg.qr(random.normal(size=(_COLUMNS, _COLUMNS)))
    lengths = np.geomspace(1, _CONDITION**-0.5, _COLUMNS)
    a = (rows[:, :-1] * lengths) @ columns
    best = random.normal(size=_COLUMNS)
    b = a @ best + 0.1 * rows[:, -1]
    arrays = {"a": a, "b": b, "best": best}
    return {name: x.astype(np.float32) for name, x in arrays.items()}


def _half_square(a: Array, x: Params, b: Array) -> Float[Array, ""]:
    return 0.5 * jnp.sum((jnp.matmul(a, x, precision="highest") - b) ** 2)


def _excess(params: Params, data: Equations) -> Float[Array, ""]:
    """The loss above its minimum: `|a (x - best)|^2 / 2`, without cancellation."""
    return _half_square(data["a"], params - data["best"], jnp.zeros_like(data["b"]))
