"""Many models and many learning rates in one program: `jax.vmap` over training."""

import jax
import jax.numpy as jnp

import steepest


def main(steps: int = 100) -> list[float]:
    """Fit a line with eight learning rates at once; return the best loss per step."""
    x = jnp.linspace(-1, 1, 32)
    y = 3 * x + 1

    def train(learning_rate, key):
        # The learning rate is an array here and may be traced: one compilation for all.
        tx = steepest.adam(learning_rate)
        params = {"w": jax.random.normal(key), "b": jnp.zeros(())}

        def step(carry, _):
            params, state = carry
            loss = lambda p: jnp.mean((p["w"] * x + p["b"] - y) ** 2)
            value, grads = jax.value_and_grad(loss)(params)
            updates, state = tx.update(grads, state, params)
            return (steepest.apply_updates(params, updates), state), value

        return jax.lax.scan(step, (params, tx.init(params)), length=steps)[1]

    rates = jnp.logspace(-3, 0, 8)
    losses = jax.jit(jax.vmap(train))(rates, jax.random.split(jax.random.key(0), 8))
    return jnp.min(losses, axis=0).tolist()


if __name__ == "__main__":
    print(main()[-1])
