"""Per-example gradient clipping, for differential privacy.

Abadi et al., Deep learning with differential privacy, 2016, arXiv:1607.00133
McMahan et al., Learning differentially private recurrent language models, 2018,
arXiv:1710.06963 (per layer)
"""

from collections.abc import Sequence
from math import prod

import jax
import jax.numpy as jnp
from jaxtyping import Array

from .. import check
from ..core import AxisName, mesh_axes, MeshAxes, Real, Updates
from ..engine import Leaves
from ..numerics import (
    is_inexact,
    parts_over,
    split_over,
    sqrt_or_zero,
    squares,
    sum_of_leaves,
    wide_dtype,
)


def per_example_global_norm_clip(
    grads: Updates, l2_norm_clip: Real, *, axis_name: AxisName = None
) -> tuple[Updates, Array]:
    """Sum the clipped gradients of all examples; also count how many were clipped.

        sum_i g_i min(1, l2_norm_clip / |g_i|)       |g_i| over all leaves of example i

    Args:
        grads: one gradient per example, along the first axis of every leaf.
        l2_norm_clip: the largest norm of one example's gradient.
        axis_name: inside `jax.shard_map`, the mesh axes over which the params are
            sharded, not those over which the examples are. Without it, each device
            uses only its own shard.

    >>> import jax.numpy as jnp
    >>> grads = {"w": jnp.array([[30.0, 40.0], [0.3, 0.4]])}
    >>> total, clipped = per_example_global_norm_clip(grads, 1.0)
    >>> [round(float(x), 3) for x in total["w"]], int(clipped)
    ([0.9, 1.2], 1)
    """
    name = "per_example_global_norm_clip"
    (limit,) = check.nonnegative(name, l2_norm_clip=l2_norm_clip)
    leaves, treedef = _examples(name, grads), jax.tree.structure(grads)
    if not leaves:
        return grads, jnp.zeros((), int)
    factors, clipped = _factors(leaves, limit, mesh_axes(name, axis_name))
    return treedef.unflatten([_summed(x, factors) for x in leaves]), clipped


def per_example_layer_norm_clip(
    grads: Updates,
    global_l2_norm_clip: Real,
    uniform: bool = True,
    *,
    axis_name: AxisName = None,
) -> tuple[Updates, Updates]:
    """Sum the gradients of all examples, clipped leaf by leaf; count those clipped.

    The limits of the leaves are chosen so that the norm of one example over all leaves
    is at most `global_l2_norm_clip`. The counts are per leaf.

    Args:
        grads: one gradient per example, along the first axis of every leaf.
        global_l2_norm_clip: the largest norm of one example's gradient.
        uniform: whether all leaves have the same limit. Otherwise the limit of a leaf
            is proportional to the square root of its size.
        axis_name: inside `jax.shard_map`, the mesh axes over which the params are
            sharded, not those over which the examples are. Without it, each device
            uses only its own shard.
    """
    name = "per_example_layer_norm_clip"
    (limit,) = check.nonnegative(name, global_l2_norm_clip=global_l2_norm_clip)
    check.flag(name, uniform=uniform)
    axes = mesh_axes(name, axis_name)
    leaves, treedef = _examples(name, grads), jax.tree.structure(grads)
    size = lambda x: prod(x.shape[1:]) * parts_over(split_over(axes, x))
    sizes = [1 if uniform else size(x) for x in leaves]
    total = max(1, sum(sizes))
    sums, counts = [], []
    for x, size in zip(leaves, sizes, strict=True):
        factors, clipped = _factors([x], limit * (size / total) ** 0.5, axes)
        sums.append(_summed(x, factors))
        counts.append(clipped)
    return treedef.unflatten(sums), treedef.unflatten(counts)


def _examples(name: str, grads: Updates) -> list[Array]:
    """The leaves, after a check that their first axes have the same size."""
    Leaves(grads, "grads").check(name)
    leaves = [jnp.asarray(x) for x in jax.tree.leaves(grads)]
    if len({x.shape[:1] for x in leaves}) > 1 or any(x.ndim == 0 for x in leaves):
        shapes = ", ".join(str(x.shape) for x in leaves)
        raise ValueError(
            f"{name}: the leaves have shapes {shapes}, expected a first axis (the "
            "examples) of the same size in all leaves. Compute the gradients with "
            "`jax.vmap(jax.grad(loss))`."
        )
    return leaves


def _factors(
    leaves: Sequence[Array], limit: Real, axes: MeshAxes | None
) -> tuple[Array, Array]:
    """The clipping factor of each example, and how many examples are clipped."""
    wide = wide_dtype(leaves)
    square = lambda x: jnp.sum(squares(x), tuple(range(1, x.ndim))).astype(wide)
    start = jnp.zeros(leaves[0].shape[:1], wide)
    norms = sqrt_or_zero(sum_of_leaves(axes, square, leaves, start))
    long = norms > limit
    return jnp.where(long, limit / jnp.where(long, norms, 1), 1), jnp.sum(long)


def _summed(x: Array, factors: Array) -> Array:
    """The sum of the examples, each times its factor, in the dtype of `x`."""
    with jax.numpy_dtype_promotion("standard"):
        total = jnp.tensordot(factors, x, 1)
    return total.astype(x.dtype) if is_inexact(x) else total
