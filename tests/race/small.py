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


def _centred(params, state, batch, key):
    """A loss on rows minus their running mean, plus noise."""
    mean = 0.5 * state["mean"] + 0.5 * jnp.mean(batch, axis=0)
    noise = 0.1 * jax.random.normal(key, batch.shape)
    value = jnp.mean(((batch - mean[None] + noise) @ params["w"] - 1.0) ** 2)
    return value, {"mean": mean, "count": state["count"] + 1}


CENTRED = Problem(
    init=lambda key: (
        {"w": jax.random.normal(key, (4,))},
        {"mean": jnp.zeros(4), "count": jnp.int32(0)},
    ),
    loss=_centred,
    batches=_batch,
    metric=lambda params, state, data: jnp.sum(params["w"]) + state["mean"][0],
    data=ROWS,
    stateful=True,
    name="centred",
)
