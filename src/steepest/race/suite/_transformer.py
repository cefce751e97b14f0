"""The model: a byte-level transformer whose layers are stacked.

All layers of a kind are one array, so that an optimizer has few leaves. Positions are
rotations of queries and keys, which are normalised. With learned positions and without
the norm, AdamW stays at the loss of byte pairs, 2.35 nats, for hundreds of steps until
attention forms: when is a matter of chance, and hides everything else.
"""

from functools import partial
from itertools import accumulate
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key, UInt8

from steepest import losses

from ._size import Size

Params = dict[str, dict[str, Array]]

NORM = "norm"  # in the names of all leaves that do not decay
STACKED = "^layers/"  # a pattern for leaves whose first axis indexes layers
_ROWS = 64  # windows of validation text at a time


def init(size: Size, key: Key[Array, ""]) -> Params:
    """Random params. No matrix is zero: hyperball optimizers keep their norms.

    Args:
        size: of the model.
        key: random key.
    """
    n, d = size.layers, size.width
    # One standard deviation for all matrices of the layers, near GPT-2's 0.02 at width
    # 768. Many models start those that add to the residual stream smaller: most
    # optimizers let them grow, but hyperball optimizers would keep them small.
    each = 0.5 * d**-0.5
    shapes = {
        "embed": {"bytes": (0.5, 256, d)},
        "layers": {
            "query": (each, n, d, d),
            "key": (each, n, d, d),
            "value": (each, n, d, d),
            "mix": (each, n, d, d),
            "widen": (each, n, d, 4 * d),
            "narrow": (each, n, 4 * d, d),
        },
        "head": {"kernel": (0.02, d, 256)},
    }
    is_shape = lambda x: isinstance(x, tuple)
    known, treedef = jax.tree.flatten(shapes, is_leaf=is_shape)
    # One draw for all leaves: the program of a draw is long.
    ends = list(accumulate(prod(shape) for _, *shape in known))
    parts = jnp.split(jax.random.normal(key, (ends[-1],), jnp.float32), ends[:-1])
    leaves = [
        scale * x.reshape(shape)
        for x, (scale, *shape) in zip(parts, known, strict=True)
    ]
    params = treedef.unflatten(leaves)
    ones = partial(jnp.ones, dtype=jnp.float32)
    params["layers"] |= {"attend_norm": ones((n, d)), "think_norm": ones((n, d))}
    params["head"] |= {"norm": ones(d)}
    return params


def scaled(params: Params, factor: Float[Array, ""]) -> Params:
    """Params with other norms of the matrices in the layers.

    Args:
        params: of the model.
        factor: on the matrices.
    """
    layers = {
        name: leaf if NORM in name else factor * leaf
        for name, leaf in params["layers"].items()
    }
    return {**params, "layers": layers}


def nats(
    size: Size, params: Params, text: UInt8[Array, "windows places"]
) -> Float[Array, ""]:
    """The mean cross-entropy of a byte, given those before it in its window.

    Args:
        size: of the model.
        params: of the model.
        text: windows, with one extra byte for the last target.
    """
    inputs, targets = text[:, :-1].astype(jnp.int32), text[:, 1:].astype(jnp.int32)
    scores = _scores(size, params, inputs).astype(jnp.float32)
    return jnp.mean(losses.softmax_cross_entropy_with_integer_labels(scores, targets))


def held_out_nats(
    size: Size,
    params: Params,
    text: UInt8[Array, "windows places"],
    parts: Int[Array, ""],
) -> Float[Array, ""]:
    """The same for the first windows of a text, a few at a time.

    Args:
        size: of the model.
        params: of the model.
        text: windows of equal weight, a multiple of those in a part.
        parts: number of parts to measure, at most `parts_of(text)`.
    """
    rows = _rows(len(text))

    def add(k: Array, total: Array) -> Array:
        part = jax.lax.dynamic_slice_in_dim(text, k * rows, rows)
        return total + nats(size, params, part)

    return jax.lax.fori_loop(0, parts, add, jnp.float32(0)) / parts


def parts_of(text: UInt8[Array, "windows places"]) -> int:
    """The number of parts of a text.

    Args:
        text: windows.
    """
    return len(text) // _rows(len(text))


def _rows(many: int) -> int:
    """The number of windows in a part: all parts are equal."""
    return next(n for n in range(min(_ROWS, many), 0, -1) if many % n == 0)


def _scores(
    size: Size, params: Params, inputs: Int[Array, "windows places"]
) -> Float[Array, "windows places 256"]:
    embed, layers, head = params["embed"], params["layers"], params["head"]
    dtype = jnp.bfloat16 if size.half else jnp.float32
    product = lambda x, w: x.astype(dtype) @ w.astype(dtype)
    # Not a lookup: on a GPU its gradient adds with atomics, in an order of chance, and
    # two runs of one seed differ.
    x = product(jax.nn.one_hot(inputs, 256), embed["bytes"]).astype(jnp.float32)
    for k in range(size.layers):
        p = {name: leaf[k] for name, leaf in layers.items()}
        x = x + _attend(size, product, p, _normal(x, p["attend_norm"]))
        wide = jax.nn.relu(product(_normal(x, p["think_norm"]), p["widen"]))
        x = x + product(wide, p["narrow"]).astype(x.dtype)
    return product(_normal(x, head["norm"]), head["kernel"])


def _attend(size: Size, product: Any, p: dict[str, Array], x: Array) -> Array:
    """Causal self-attention."""
    w, n, d = x.shape

    def several(name: str) -> Float[Array, "windows heads places width"]:
        return jnp.swapaxes(product(x, p[name]).reshape(w, n, size.heads, -1), 1, 2)

    queries, keys, values = map(several, ("query", "key", "value"))
    turned = lambda x: _rotated(_normal(x.astype(jnp.float32))).astype(x.dtype)
    scores = turned(queries) @ jnp.swapaxes(turned(keys), 2, 3)
    scores = scores.astype(jnp.float32) * (d // size.heads) ** -0.5
    seen = jnp.tril(jnp.ones((n, n), bool))[None, None]
    share = jax.nn.softmax(jnp.where(seen, scores, -1e9), axis=-1)
    mixed = jnp.swapaxes(share.astype(values.dtype) @ values, 1, 2).reshape(w, n, d)
    return product(mixed, p["mix"]).astype(x.dtype)


def _rotated(x: Float[Array, "... places width"]) -> Float[Array, "... places width"]:
    """Pairs of elements, rotated by angles proportional to their place."""
    *_, places, width = x.shape
    speeds = 1e4 ** (-jnp.arange(width // 2) / (width // 2))
    angles = jnp.arange(places)[:, None] * speeds[None, :]
    angles = jnp.expand_dims(angles, range(x.ndim - 2))
    cos, sin = jnp.cos(angles), jnp.sin(angles)
    a, b = jnp.split(x, 2, axis=-1)
    return jnp.concatenate([a * cos - b * sin, a * sin + b * cos], axis=-1)


def _normal(x: Array, scale: Float[Array, " width"] | None = None) -> Array:
    """`x`, with a root mean square of 1 along its last axis, times `scale`."""
    length = jnp.mean(x**2, axis=-1, keepdims=True)
    x = x * jax.lax.rsqrt(length + 1e-6)
    return x if scale is None else x * jnp.expand_dims(scale, range(x.ndim - 1))
