"""Params in nested dicts, as in Haiku; groups by the name of the module."""

import jax
import jax.numpy as jnp

import steepest


def network(params, x):
    """Two layers."""
    hidden = jnp.tanh(x @ params["mlp/linear"]["w"] + params["mlp/linear"]["b"])
    return hidden @ params["mlp/head"]["w"] + params["mlp/head"]["b"]


def main(steps: int = 100) -> list[float]:
    """Fit a sine; return the losses."""
    x = jnp.linspace(-2, 2, 64)[:, None]
    y = jnp.sin(2 * x)
    keys = jax.random.split(jax.random.key(0))
    params = {
        "mlp/linear": {"w": jax.random.normal(keys[0], (1, 16)), "b": jnp.zeros(16)},
        "mlp/head": {"w": jax.random.normal(keys[1], (16, 1)) / 4, "b": jnp.zeros(1)},
    }
    tx = steepest.partition(
        {"body": steepest.adamw(0.02), "head": steepest.sgd(0.02, momentum=0.9)},
        {"mlp/linear": "body", "mlp/head": "head"},
    )

    @jax.jit
    def step(params, state):
        loss = lambda p: jnp.mean((network(p, x) - y) ** 2)
        value, grads = jax.value_and_grad(loss)(params)
        updates, state = tx.update(grads, state, params)
        return steepest.apply_updates(params, updates), state, value

    state, losses = tx.init(params), []
    for _ in range(steps):
        params, state, value = step(params, state)
        losses.append(float(value))
    return losses


if __name__ == "__main__":
    print(main()[-1])
