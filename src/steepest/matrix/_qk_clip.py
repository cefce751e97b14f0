"""QK-Clip: shrink the queries and keys of attention heads whose logits grow too large.

Kimi Team, Kimi K2: open agentic intelligence, 2025, arXiv:2507.20534 (MuonClip)
"""

from collections.abc import Mapping
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float, PyTree

from .. import check
from ..core import (
    EmptyState,
    GradientTransformationExtraArgs,
    missing,
    OptState,
    Params,
    Real,
    transformation,
    Updates,
)
from ..engine import Leaves, wide
from ..numerics import wide_dtype
from ..tree import as_patterns, key_paths, Patterns

_NAME = "qk_clip"


class Heads(NamedTuple):
    """Which of the last axes of a leaf holds the heads."""

    axis: int  # counted from the end of the shape
    ndim: int  # the number of words
    size: int  # elements of the axis for each head


@transformation
def qk_clip(
    threshold: Real = 100.0,
    *,
    routes: Mapping[str, str],
    power: Real = 0.5,
) -> GradientTransformationExtraArgs:
    """Shrink the weights of queries and keys where attention logits grow too large.

        gamma = min(1, threshold / S)           S: the largest logit of a head
        p + u = gamma^power (p + g)             for the weights of this head

    It must come last in a chain: `g` is the whole update. If `p + g` are the weights of
    queries and keys, the logits of the head are then at most `threshold` for the same
    activations. Weights of heads with smaller logits are unchanged, bit for bit.

    `S` is the extra argument `max_logits` of `update`: a tree of arrays of shape
    (heads,), measured in the forward pass and reduced over the batch and all devices.
    The path of a weight, up to where the pattern matches it, names its layer, and
    `max_logits` has one array below that path. In Flax, `sow` makes such a tree:

        self.sow("intermediates", "max_logits", logits.max((0, 2, 3)))      # in a layer

        tx = chain(muon(1e-3), qk_clip(routes={"(query|key)/kernel": "in head out"}))
        _, seen = model.apply({"params": params}, x, mutable="intermediates")
        u, state = tx.update(g, state, params, max_logits=seen["intermediates"])

    A dict works too: `{"layers_0/attention": jnp.array([80.0, 120.0])}`. With scanned
    layers, params and `max_logits` have the same axes in front. If several queries
    share a key, `max_logits` has a number for each query, those with the same key next
    to each other, and the largest of them counts for the key.

    Values that are NaN or infinite are ignored. If queries and keys have biases, route
    them too, such as `"(query|key)/bias": "head out"`.

    Args:
        threshold: the largest allowed logit, above 0.
        routes: maps a pattern to a word for each of the last axes. The word `head`
            names the axis of heads, and all other words are free. `head*64` names an
            axis where each head has 64 consecutive elements, such as
            `{"(q|k)_proj/weight": "head*64 in"}`. Patterns are regular expressions that
            may match anywhere in a path, such as `layers_0/attention/query/kernel`; the
            first that does decides. Each must match at least one leaf.
        power: the power of `gamma`: 1/2 for both queries and keys; 1 if only one of
            them is scaled, such as the rotary part of the queries in multi-head latent
            attention.

    >>> import jax.numpy as jnp, steepest
    >>> words = {"query|key": "in head out"}
    >>> tx = steepest.chain(steepest.sgd(0.1), steepest.qk_clip(100.0, routes=words))
    >>> params = {"query": jnp.ones((8, 2, 4)), "key": jnp.ones((8, 2, 4))}
    >>> zeros = {"query": jnp.zeros((8, 2, 4)), "key": jnp.zeros((8, 2, 4))}
    >>> logits = jnp.array([50.0, 400.0])  # for each head
    >>> u, _ = tx.update(zeros, tx.init(params), params, max_logits=logits)
    >>> (params["query"] + u["query"])[0, :, 0].tolist()
    [1.0, 0.5]
    """
    (threshold,) = check.positive(_NAME, threshold=threshold)
    (power,) = check.nonnegative(_NAME, power=power)
    if not isinstance(routes, Mapping) or not routes:
        raise TypeError(
            f"{_NAME}: routes is {routes!r}, expected a dict, such as "
            '`{"(query|key)/kernel": "in head out"}`.'
        )
    patterns = as_patterns(_NAME, list(routes))
    heads = [_heads(*item) for item in routes.items()]

    def init(params: Params) -> EmptyState:
        return EmptyState()

    def update(
        updates: Updates,
        state: OptState,
        params: Params | None = None,
        *,
        max_logits: PyTree[ArrayLike] = None,
        **extra_args: object,
    ) -> tuple[Updates, OptState]:
        if params is None:
            raise missing(_NAME, "params")
        if max_logits is None:
            raise missing(_NAME, "max_logits")
        leaves = Leaves(updates)
        leaves.check(_NAME)
        ps = leaves.match(
            _NAME, params, "params", "Pass the params the updates are for."
        )
        logits = _by_path(max_logits)
        places = [k for k, g in enumerate(leaves.arrays) if g is not None]
        for k, (row, path, layer) in zip(
            places, _matches(patterns, updates), strict=True
        ):
            if row is None:
                continue
            seen = _logits_of(layer, path, logits)
            factor = _factor(path, leaves.arrays[k].shape, heads[row], seen)
            numbers = [factor, threshold, power]
            (leaves.arrays[k],) = _shrink(numbers, [(ps[k], leaves.arrays[k])])
        return leaves.like(leaves.arrays), state

    return GradientTransformationExtraArgs(init, update)


def shrink_formula(s: Array, threshold: Real, power: Real, p: Array, u: Array) -> Array:
    """`u` such that `p + u` is multiplied by `min(1, threshold / s)^power`.

    Args:
        s: the largest logits, in a shape that broadcasts to `p`.
        threshold: the largest allowed logit.
        power: the power of the factor.
        p: the param.
        u: its update.
    """
    large = jnp.isfinite(s) & (s > threshold)
    gamma = jnp.where(large, threshold / jnp.where(large, s, 1), 1)
    # Not `gamma (p + u) - p`, which would round `u` where `gamma` is 1.
    return u + (gamma**power - 1) * (p + u)


_shrink = wide(shrink_formula)


def _heads(pattern: str, route: object) -> Heads:
    """The axis of heads in one entry of `routes`."""
    words = route.split() if isinstance(route, str) else []
    found = [k for k, word in enumerate(words) if word.partition("*")[0] == "head"]
    if len(found) == 1:
        _, star, size = words[found[0]].partition("*")
        if not star or (size.isdecimal() and int(size) > 0):
            return Heads(found[0] - len(words), len(words), int(size or 1))
    raise ValueError(
        f"{_NAME}: routes[{pattern!r}] is {route!r}, expected a word for each of the "
        "last axes, one of them 'head', or 'head*64' if each head has 64 consecutive "
        "elements there, such as 'in head out'."
    )


def _matches(patterns: Patterns, updates: Updates) -> list[tuple[int | None, str, str]]:
    """For each leaf, the first pattern that matches, its path, and its layer."""
    rows: list[tuple[int | None, str, str]] = []
    paths = key_paths(updates)
    for path in paths:
        found = ((k, pattern.search(path)) for k, pattern in enumerate(patterns))
        row, match = next(((k, m) for k, m in found if m is not None), (None, None))
        rows.append((row, path, "" if match is None else path[: match.start()]))
    unused = set(range(len(patterns))) - {row for row, _, _ in rows}
    if paths and unused:
        raise ValueError(
            f"{_NAME}: the pattern {patterns[min(unused)].pattern!r} in routes matches "
            f"no leaf, expected at least one, of {paths}."
        )
    return rows


def _by_path(max_logits: PyTree[ArrayLike]) -> dict[str, ArrayLike]:
    """The arrays by path."""
    return dict(zip(key_paths(max_logits), jax.tree.leaves(max_logits), strict=True))


def _logits_of(layer: str, path: str, logits: Mapping[str, ArrayLike]) -> ArrayLike:
    """The array of a layer."""
    # Variables of Flax hold the params in a collection of that name.
    layer = layer.removeprefix("params/").rstrip("/")
    found = [
        x
        for at, x in logits.items()
        if not layer or at == layer or at.startswith(f"{layer}/")
    ]
    if len(found) != 1:
        raise ValueError(
            f"{_NAME}: max_logits has {len(found)} arrays for the leaf {path!r}, "
            f"expected one, at the path {layer!r} or below it. Its paths are "
            f"{list(logits)}."
        )
    return found[0]


def _factor(
    path: str, shape: tuple[int, ...], heads: Heads, logits: ArrayLike
) -> Float[Array, "..."]:
    """The largest logits of a leaf, in a shape that broadcasts to its own."""
    s = jnp.asarray(logits)
    s = s.astype(wide_dtype([s]))
    stack = shape[: len(shape) - heads.ndim]
    long = shape[heads.axis] if len(shape) >= heads.ndim else 0
    count, queries = long // heads.size, s.shape[-1] if s.ndim else 0
    fits = count * heads.size == long and s.shape == (*stack, queries)
    if not (fits and count and queries and queries % count == 0):
        expected = (*stack, count) if count else "of a leaf with an axis of heads"
        raise ValueError(
            f"{_NAME}: the leaf {path!r} has shape {shape}, and its max_logits has "
            f"shape {s.shape}, expected {expected}: one number for each head."
        )
    s = jnp.max(s.reshape(*stack, count, queries // count), -1)
    s = jnp.repeat(s, heads.size, -1)
    after = -1 - heads.axis
    before = heads.ndim - 1 - after
    return s.reshape(*stack, *(1,) * before, long, *(1,) * after)
