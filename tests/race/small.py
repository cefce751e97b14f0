"""A problem so small that a race takes almost no time."""

import jax
import jax.numpy as jnp
import numpy as np

from steepest.race import Problem

ROWS = np.random.default_rng(0).normal(size=(50, 4)).astype(np.float32)


def _batch(key, data):
    return data[jax.random.randint(key, (8,), 0, len(data))]


def _loss(params, batch):
    return jnp.mean((batch @ params["w"] - params["b"]) ** 2)


LINE = Problem(
    init=lambda key: {"w": jax.random.normal(key, (4,)), "b": jnp.array(1.0)},
    loss=_loss,
    batches=_batch,
    metric=lambda params, data: _loss(params, data),
    data=ROWS,
    name="line",
    about="A line through points.",
    target=0.5,
    steps=12,
    optimizers=("sgd", "adam"),
    learning_rates=(1e-3, 1e-1, 1e30),
)
