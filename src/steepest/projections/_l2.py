"""Projections onto the ball and sphere of the Euclidean norm."""

import jax
import jax.numpy as jnp
from jaxtyping import PyTree

from .. import check
from ..core import Real
from ..tree import norm, size
from ._precision import restored, scaled, widened


def projection_l2_sphere(tree: PyTree, scale: Real = 1) -> PyTree:
    """The nearest tree of norm `scale`.

        y = x scale / |x|

    At zero all are equally near; the one with equal entries is returned.

    Args:
        tree: a tree of numbers.
        scale: the norm.
    """
    name = "projection_l2_sphere"
    (radius,) = check.amount.must(name, scale=scale)
    x, _ = scaled(*widened(name, tree=tree))
    length = norm(x)
    zero = length == 0
    factor = radius / jnp.where(zero, 1, length)
    equal = radius / max(size(tree), 1) ** 0.5
    nearest = jax.tree.map(
        lambda x: jnp.where(zero, equal, x * factor.astype(x.dtype)), x
    )
    return restored(nearest, [tree], scale)


def projection_l2_ball(tree: PyTree, scale: Real = 1) -> PyTree:
    """The nearest tree of norm at most `scale`.

        y = x min(1, scale / |x|)

    Args:
        tree: a tree of numbers.
        scale: the radius.

    >>> import jax.numpy as jnp
    >>> projection_l2_ball({"w": jnp.array([0.0, 4.0])}, 0.5)["w"].tolist()
    [0.0, 0.5]
    """
    name = "projection_l2_ball"
    (radius,) = check.nonnegative.must(name, scale=scale)
    x, unit = scaled(*widened(name, tree=tree))
    length = norm(x)
    zero = length == 0
    factor = jnp.minimum(unit, radius / jnp.where(zero, 1, length))
    factor = jnp.where(zero, unit, factor)
    nearest = jax.tree.map(lambda x: x * factor.astype(x.dtype), x)
    return restored(nearest, [tree], scale)
