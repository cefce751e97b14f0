"""Flax linen: a `TrainState` carries params, state and transformation."""

import jax
import jax.numpy as jnp
from flax import linen as nn
from flax.training.train_state import TrainState

import steepest


class Model(nn.Module):
    """Two layers."""

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        return nn.Dense(1)(nn.tanh(nn.Dense(16)(x)))


@jax.jit
def step(state: TrainState, x: jax.Array, y: jax.Array):
    """One step; also return the loss before it."""

    def loss(params):
        return jnp.mean((state.apply_fn(params, x) - y) ** 2)

    value, grads = jax.value_and_grad(loss)(state.params)
    return state.apply_gradients(grads=grads), value


def main(steps: int = 100) -> list[float]:
    """Fit a sine; return the losses."""
    x, model = jnp.linspace(-2, 2, 64)[:, None], Model()
    params = model.init(jax.random.key(0), x)
    tx = steepest.adamw(steepest.warmup_cosine_decay_schedule(0.0, 0.03, 10, steps))
    state = TrainState.create(apply_fn=model.apply, params=params, tx=tx)
    losses = []
    for _ in range(steps):
        state, loss = step(state, x, jnp.sin(2 * x))
        losses.append(float(loss))
    return losses


if __name__ == "__main__":
    print(main()[-1])
