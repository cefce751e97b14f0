"""A user's script without mistakes: type checkers must find nothing in it.

`make typing` checks it a second time with Optax in place of steepest.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

import steepest as lib


class Params(NamedTuple):
    """A linear model."""

    w: jax.Array
    b: jax.Array


def loss(params: Params, x: jax.Array, y: jax.Array) -> jax.Array:
    """The mean squared error."""
    return jnp.mean((x @ params.w + params.b - y) ** 2)


def make(steps: int, max_norm: float = 1.0) -> lib.GradientTransformationExtraArgs:
    """AdamW with a warm-up, clipping, and no decay for the bias."""
    rate = lib.warmup_cosine_decay_schedule(0.0, 0.3, steps // 10, steps)
    mask = lambda params: jax.tree.map(lambda p: p.ndim > 0, params)
    decayed = lib.adamw(rate, b2=0.99, weight_decay=1e-3, mask=mask)
    return lib.chain(lib.clip_by_global_norm(max_norm), decayed)


def train(tx: lib.GradientTransformation, steps: int) -> list[float]:
    """Fit a line; return the losses."""
    x = jnp.linspace(-1, 1, 32)[:, None]
    y = 3 * x[:, 0] - 1
    params = Params(jnp.zeros(1), jnp.array(0.0))
    state = tx.init(params)
    losses: list[float] = []
    for _ in range(steps):
        value, grads = jax.value_and_grad(loss)(params, x, y)
        updates, state = tx.update(grads, state, params)
        params = lib.apply_updates(params, updates)
        losses.append(float(value))
    return losses


def masks() -> list[lib.GradientTransformation]:
    """Groups, wrappers and schedules."""
    rate = lib.piecewise_constant_schedule(0.1, {100: 0.5})
    frozen = lib.masked(lib.set_to_zero(), {"w": False, "b": True})
    groups = lib.partition({"a": lib.sgd(rate), "b": lib.lion(1e-4)}, {"w": "a"})
    step = jnp.array(0.1)
    return [frozen, groups, lib.adam(step), lib.apply_if_finite(lib.sgd(0.1), 5)]


def line_search() -> jax.Array:
    """L-BFGS, whose `update` takes extra arguments."""
    f = lambda x: jnp.sum((x - 1.0) ** 2)
    tx, x = lib.lbfgs(), jnp.zeros(2)
    value, grad = jax.value_and_grad(f)(x)
    updates, _ = tx.update(grad, tx.init(x), x, value=value, grad=grad, value_fn=f)
    return lib.apply_updates(x, updates)
