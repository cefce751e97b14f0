"""Clipping the gradient of each example, for differential privacy.

Abadi et al., Deep learning with differential privacy, 2016, arXiv:1607.00133
McMahan et al., Learning differentially private recurrent language models, 2018,
arXiv:1710.06963 (per layer)
"""

from collections.abc import Sequence
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from ..core import flag, nonnegative, Real, Updates
from ..engine import Leaves
from ..numerics import is_inexact, sqrt_or_zero, squares, wide_dtype


def per_example_global_norm_clip(
    grads: Updates, l2_norm_clip: Real
) -> tuple[Updates, Array]:
    """The sum over examples of gradients clipped to one length, and how many were.

        sum_i g_i min(1, l2_norm_clip / |g_i|)       |g_i| over all leaves of example i

    Args:
        grads: a gradient for each example, along the first axis of every leaf.
        l2_norm_clip: the largest length the gradient of an example may have.

    >>> grads = {"w": jnp.array([[30.0, 40.0], [0.3, 0.4]])}
    >>> total, clipped = per_example_global_norm_clip(grads, 1.0)
    >>> [round(float(x), 3) for x in total["w"]], int(clipped)
    ([0.9, 1.2], 1)
    """
    who = "per_example_global_norm_clip"
    (limit,) = nonnegative(who, l2_norm_clip=l2_norm_clip)
    leaves, treedef = _examples(who, grads)
    if not leaves:
        return grads, jnp.zeros((), int)
    factors, clipped = _factors(leaves, limit)
    return treedef.unflatten([_summed(x, factors) for x in leaves]), clipped


def per_example_layer_norm_clip(
    grads: Updates, global_l2_norm_clip: Real, uniform: bool = True
) -> tuple[Updates, Updates]:
    """The same, but each leaf by its own length; and how many were clipped, for each.

    The limits of the leaves are such that all leaves of an example together are not
    longer than `global_l2_norm_clip`.

    Args:
        grads: a gradient for each example, along the first axis of every leaf.
        global_l2_norm_clip: the largest length the gradient of an example may have.
        uniform: whether all leaves have the same limit, or one in proportion to the
            root of their size.
    """
    who = "per_example_layer_norm_clip"
    (limit,) = nonnegative(who, global_l2_norm_clip=global_l2_norm_clip)
    flag(who, uniform=uniform)
    leaves, treedef = _examples(who, grads)
    sizes = [1 if uniform else prod(x.shape[1:]) for x in leaves]
    total = max(1, sum(sizes))
    sums, counts = [], []
    for x, size in zip(leaves, sizes, strict=True):
        factors, clipped = _factors([x], limit * (size / total) ** 0.5)
        sums.append(_summed(x, factors))
        counts.append(clipped)
    return treedef.unflatten(sums), treedef.unflatten(counts)


def _examples(who: str, grads: Updates) -> tuple[list[Array], Any]:
    """The leaves, if they have a first axis of one size."""
    Leaves(grads, "grads").check(who)
    leaves, treedef = jax.tree.flatten(grads)
    leaves = [jnp.asarray(x) for x in leaves]
    if len({x.shape[:1] for x in leaves}) > 1 or any(x.ndim == 0 for x in leaves):
        shapes = ", ".join(str(x.shape) for x in leaves)
        raise ValueError(
            f"{who}: the leaves have shapes {shapes}, and a first axis of one size, "
            "the examples, is wanted. Take gradients with `jax.vmap(jax.grad(loss))`."
        )
    return leaves, treedef


def _factors(leaves: Sequence[Array], limit: Any) -> tuple[Array, Array]:
    """What to multiply each example with, and how many get shorter by it."""
    parts = [jnp.sum(squares(x), axis=tuple(range(1, x.ndim))) for x in leaves]
    wide = wide_dtype(parts)
    norms = sqrt_or_zero(sum(x.astype(wide) for x in parts[1:]) + parts[0].astype(wide))
    long = norms > limit
    return jnp.where(long, limit / jnp.where(long, norms, 1), 1), jnp.sum(long)


def _summed(x: Array, factors: Array) -> Array:
    """The sum of the examples, each times its factor; in the dtype of `x`."""
    with jax.numpy_dtype_promotion("standard"):
        total = jnp.tensordot(factors, x, 1)
    return total.astype(x.dtype) if is_inexact(x) else total
