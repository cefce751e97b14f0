"""Rosenbrock's function.

Rosenbrock, An automatic method for finding the greatest or least value of a function,
1960
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from .._problem import Problem

_START = np.array([-1.2, 1.0] * 5, np.float32)


def rosenbrock() -> Problem:
    """Rosenbrock's function in ten dimensions: a narrow, curved, almost flat valley.

    Starts are drawn around the classical one. The metric is the function itself; its
    minimum is 0, where all coordinates are 1.
    """
    return Problem(
        init=_around_the_start,
        loss=lambda params, batch: _valley(params),
        metric=lambda params, data: _valley(params),
        name="rosenbrock",
        about="Rosenbrock's function in ten dimensions: a narrow, curved valley.",
        measure="f",
        better="lower",
        target=1e-3,
        steps=3000,
        optimizers=(
            "sgd",
            "sgd(momentum=0.9, nesterov=True)",
            "adam",
            "rprop",
            "adabelief",
            "lookahead(adam)",
            "schedule_free_adamw",
            "lbfgs",
        ),
    )


def _around_the_start(key: Key[Array, ""]) -> Float[Array, " n"]:
    noise = jax.random.normal(key, _START.shape, jnp.float32)
    return jnp.asarray(_START) + 0.1 * noise


def _valley(x: Float[Array, " n"]) -> Float[Array, ""]:
    """`sum of 100 (x' - x^2)^2 + (1 - x)^2`, where `x'` is the coordinate after `x`."""
    here, after = x[:-1], x[1:]
    return jnp.sum(100 * (after - here**2) ** 2 + (1 - here) ** 2)
