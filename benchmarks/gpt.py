"""A GPT-2 that trains: its initial weights, its loss, and batches of bytes.

The layers are stacked, and `jax.lax.scan` runs over them, so that one layer is compiled
and not 48. Each layer is computed again in the backward pass (`jax.checkpoint`): only
its input is kept. The same holds for the logits, one sequence at a time. The weights
may be float32 or bfloat16. Products are bfloat16; norms, logits and the loss float32.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from steepest.race.problems import load

HEAD = 64  # the width of a head, as in every GPT-2
HALF = jnp.bfloat16


def init(shapes: Any, dtype: Any, key: Any) -> Any:
    """Random weights, as in GPT-2.

    Args:
        shapes: the leaves, from `trees.stacked_gpt`.
        dtype: dtype of the weights.
        key: key of the random numbers.
    """
    layers = shapes["layers"]["qkv"]["weight"].shape[0]
    pairs, treedef = jax.tree.flatten_with_path(shapes)
    keys = jax.random.split(key, len(pairs))
    leaves = []
    # One leaf after another: all at once would need more memory than a training step.
    for one, (path, leaf) in zip(keys, pairs, strict=True):
        *_, kind, last = ("", *(str(step.key) for step in path))
        if last in ("bias", "scale"):
            leaves.append(jnp.full(leaf.shape, float(last == "scale"), dtype))
            continue
        # Smaller where a layer adds to the sum of all layers.
        small = (2 * layers) ** -0.5 if kind in ("projection", "down") else 1.0
        leaves.append(_normal(one, 0.02 * small, leaf.shape, dtype))
    return treedef.unflatten(leaves)


@partial(jax.jit, static_argnums=(2, 3))
def _normal(key: Any, size: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    return (size * jax.random.normal(key, shape, jnp.float32)).astype(dtype)


def loss(params: Any, tokens: Any, attention: str = "xla") -> Any:
    """The mean cross-entropy of a token, given those before it, in nats.

    Args:
        params: the weights.
        tokens: integers, `[sequences, context + 1]`.
        attention: the `implementation` of `jax.nn.dot_product_attention`.
    """
    inputs, targets = tokens[:, :-1], tokens[:, 1:]
    places = params["positions"][None, : inputs.shape[1]]
    x = params["tokens"][inputs].astype(HALF) + places.astype(HALF)
    layer = jax.checkpoint(partial(_layer, attention=attention))
    x, _ = jax.lax.scan(lambda x, p: (layer(x, p), None), x, params["layers"])
    head = jax.checkpoint(partial(_nats, params["norm"], params["tokens"]))
    return jnp.mean(jax.lax.map(lambda pair: head(*pair), (x, targets)))


def _layer(x: Any, p: Any, attention: str) -> Any:
    heads = (*x.shape[:2], x.shape[2] // HEAD, HEAD)
    parts = jnp.split(_linear(p["qkv"], _norm(p["norm_1"], x)), 3, axis=-1)
    q, k, v = (part.reshape(heads) for part in parts)
    attend: Any = jax.nn.dot_product_attention
    mixed = attend(q, k, v, is_causal=True, implementation=attention)
    x = x + _linear(p["projection"], mixed.reshape(x.shape))
    wide = jax.nn.gelu(_linear(p["up"], _norm(p["norm_2"], x)))
    return x + _linear(p["down"], wide)


def _nats(norm: Any, tokens: Any, x: Any, targets: Any) -> Any:
    """The cross-entropy of each token of one sequence."""
    x = _norm(norm, x)
    logits = jnp.matmul(x, tokens.astype(HALF).T, preferred_element_type=jnp.float32)
    right = jnp.take_along_axis(logits, targets[:, None], axis=-1)[:, 0]
    return jax.nn.logsumexp(logits, axis=-1) - right


def _linear(p: Any, x: Any) -> Any:
    bias = p["bias"].astype(HALF).reshape((1,) * (x.ndim - 1) + (-1,))
    return x @ p["weight"].astype(HALF) + bias


def _norm(p: Any, x: Any) -> Any:
    scale, bias = (
        p[name].astype(jnp.float32).reshape((1,) * (x.ndim - 1) + (-1,))
        for name in ("scale", "bias")
    )
    wide = x.astype(jnp.float32)
    wide = wide - jnp.mean(wide, axis=-1, keepdims=True)
    square = jnp.mean(wide**2, axis=-1, keepdims=True)
    return (wide * jax.lax.rsqrt(square + 1e-5) * scale + bias).astype(HALF)


def batches(sequences: int, context: int, seed: int = 0) -> Iterator[np.ndarray]:
    """Random windows of the source of Python's standard library; a byte is a token.

    Args:
        sequences: the number of windows in a batch.
        context: the length of a window; it has one more byte for the last target.
        seed: seed of the random numbers.
    """
    source: Any = load("bytes").data
    text, rng = np.asarray(source["train"]), np.random.default_rng(seed)
    while True:
        starts = rng.integers(0, len(text) - context, sequences)
        yield text[starts[:, None] + np.arange(context + 1)].astype(np.int32)
