"""Equinox: the model is the tree; leaves that are not arrays are filtered out."""

import equinox as eqx
import jax
import jax.numpy as jnp

import steepest


def main(steps: int = 100) -> list[float]:
    """Fit a sine; return the losses."""
    x = jnp.linspace(-2, 2, 64)[:, None]
    y = jnp.sin(2 * x)
    model = eqx.nn.MLP(1, 1, 16, 1, jnp.tanh, key=jax.random.key(0))
    tx = steepest.adamw(0.02)
    # The activation is also a leaf: the filter replaces it with `None`.
    state = tx.init(eqx.filter(model, eqx.is_inexact_array))

    @eqx.filter_jit
    def step(model, state):
        def loss(model):
            return jnp.mean((jax.vmap(model)(x) - y) ** 2)

        value, grads = eqx.filter_value_and_grad(loss)(model)
        params = eqx.filter(model, eqx.is_inexact_array)
        updates, state = tx.update(grads, state, params)
        return eqx.apply_updates(model, updates), state, value

    losses = []
    for _ in range(steps):
        model, state, value = step(model, state)
        losses.append(float(value))
    return losses


if __name__ == "__main__":
    print(main()[-1])
