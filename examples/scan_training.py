"""The whole training in one compiled program, with `jax.lax.scan`."""

import jax
import jax.numpy as jnp

import steepest


def network(params, x):
    """Two layers."""
    hidden = jnp.tanh(x @ params["hidden"]["w"] + params["hidden"]["b"])
    return hidden @ params["head"]["w"] + params["head"]["b"]


def main(steps: int = 100) -> list[float]:
    """Fit a sine; return the losses."""
    x = jnp.linspace(-2, 2, 64)[:, None]
    y = jnp.sin(2 * x)
    first, second = jax.random.split(jax.random.key(0))
    params = {
        "hidden": {"w": jax.random.normal(first, (1, 16)), "b": jnp.zeros(16)},
        "head": {"w": jax.random.normal(second, (16, 1)) / 4, "b": jnp.zeros(1)},
    }
    tx = steepest.MultiSteps(steepest.adam(0.04), every_k_schedule=2)

    def step(carry, _):
        params, state = carry
        loss = lambda p: jnp.mean((network(p, x) - y) ** 2)
        value, grads = jax.value_and_grad(loss)(params)
        updates, state = tx.update(grads, state, params)
        return (steepest.apply_updates(params, updates), state), value

    @jax.jit
    def train(params):
        return jax.lax.scan(step, (params, tx.init(params)), length=steps)

    _, losses = train(params)
    return losses.tolist()


if __name__ == "__main__":
    print(main()[-1])
