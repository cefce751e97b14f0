"""Flax NNX: the optimizer has the model's params and updates them in place."""

import jax
import jax.numpy as jnp
from flax import nnx

import steepest


class Model(nnx.Module):
    """Two layers."""

    def __init__(self, rngs: nnx.Rngs):
        self.hidden = nnx.Linear(1, 16, rngs=rngs)
        self.out = nnx.Linear(16, 1, rngs=rngs)

    def __call__(self, x: jax.Array) -> jax.Array:
        return self.out(jnp.tanh(self.hidden(x)))


@nnx.jit
def step(model: Model, optimizer: nnx.Optimizer, x: jax.Array, y: jax.Array):
    """One step; return the loss before it."""
    loss, grads = nnx.value_and_grad(lambda m: jnp.mean((m(x) - y) ** 2))(model)
    optimizer.update(model, grads)
    return loss


def main(steps: int = 100) -> list[float]:
    """Fit a sine; return the losses."""
    x = jnp.linspace(-2, 2, 64)[:, None]
    model = Model(nnx.Rngs(0))
    tx = steepest.chain(steepest.clip_by_global_norm(1.0), steepest.adamw(0.02))
    optimizer = nnx.Optimizer(model, tx, wrt=nnx.Param)
    return [float(step(model, optimizer, x, jnp.sin(2 * x))) for _ in range(steps)]


if __name__ == "__main__":
    print(main()[-1])
