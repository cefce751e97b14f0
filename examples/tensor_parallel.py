"""Tensor parallelism: a transformer block sharded over `model`, batches over `data`.

As in Megatron-LM (arXiv:1909.08053), the first weight of a pair is sharded by columns
and the second by rows. Each device computes some heads and some hidden units, and one
sum over `model` follows each pair. `zero` shards the optimizer state over `data`, too.
"""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

import steepest

TOKENS, WIDTH, HEADS, SIZE, HIDDEN = 16, 32, 4, 8, 64
WEIGHTS = {  # name -> shape and sharding
    "embed": ((TOKENS, WIDTH), P()),
    "query": ((WIDTH, HEADS, SIZE), P(None, "model")),
    "key": ((WIDTH, HEADS, SIZE), P(None, "model")),
    "value": ((WIDTH, HEADS, SIZE), P(None, "model")),
    "out": ((HEADS, SIZE, WIDTH), P("model")),
    "up": ((WIDTH, HIDDEN), P(None, "model")),
    "down": ((HIDDEN, WIDTH), P("model")),
}


def logits(params: dict[str, jax.Array], tokens: jax.Array) -> jax.Array:
    """The logits of the next tokens: attention, then two layers."""
    x = params["embed"][tokens]
    project = lambda name: jnp.einsum("btd,dhs->bths", norm(x), params[name])
    q, k, v = map(project, ("query", "key", "value"))
    heads = jax.nn.dot_product_attention(q, k, v, is_causal=True)
    x += jnp.einsum("bths,hsd->btd", heads, params["out"])
    x += jax.nn.gelu(norm(x) @ params["up"]) @ params["down"]
    return norm(x) @ params["embed"].T


def norm(x: jax.Array) -> jax.Array:
    """Divided by the root mean square."""
    return x * jax.lax.rsqrt(jnp.mean(x**2, axis=-1, keepdims=True) + 1e-6)


def loss(params: dict[str, jax.Array], tokens: jax.Array) -> jax.Array:
    """The mean cross entropy of the next tokens."""
    entropy = steepest.losses.softmax_cross_entropy_with_integer_labels
    return jnp.mean(entropy(logits(params, tokens[:, :-1]), tokens[:, 1:]))


def main(steps: int = 100, devices: Sequence[jax.Device] | None = None) -> list[float]:
    """Learn to count in steps of 5; return the losses."""
    devices = devices or jax.devices()
    model = min(HEADS, len(devices))
    sizes, auto = (len(devices) // model, model), (AxisType.Auto,) * 2
    mesh = jax.make_mesh(sizes, ("data", "model"), axis_types=auto, devices=devices)

    keys = iter(jax.random.split(jax.random.key(0), len(WEIGHTS)))
    where = {name: NamedSharding(mesh, spec) for name, (_, spec) in WEIGHTS.items()}
    normal = lambda shape: jax.random.normal(next(keys), shape) / 8
    params = {name: normal(shape) for name, (shape, _) in WEIGHTS.items()}
    params = jax.device_put(params, where)
    tx = steepest.zero(steepest.adamw(0.01), axis="data")
    state, step = steepest.init(tx, params), steepest.make_train_step(loss, tx)
    losses = []
    for k in range(steps):
        first = jax.random.randint(jax.random.key(k), (8, 1), 0, TOKENS)
        tokens = (first + 5 * jnp.arange(13)[None]) % TOKENS
        batch = jax.device_put(tokens, NamedSharding(mesh, P("data")))
        params, state, value = step(params, state, batch)
        losses.append(float(value))
    return losses


if __name__ == "__main__":
    print(main()[-1])
