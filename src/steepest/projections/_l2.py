"""The nearest point of the ball and the sphere of the Euclidean length."""

import jax
import jax.numpy as jnp
from jaxtyping import PyTree

from .. import check
from ..core import Real
from ..tree import norm, size
from ._precision import restored, scaled, widened


def projection_l2_sphere(tree: PyTree, scale: Real = 1) -> PyTree:
    """The nearest tree of length `scale`.

        y = x scale / |x|

    At zero all are equally near, and the one with equal numbers is returned.

    Args:
        tree: a tree of numbers.
        scale: the length.
    """
    name = "projection_l2_sphere"
    (radius,) = check.amount.must(name, scale=scale)
    x, _ = scaled(*widened(name, tree=tree))
    length = norm(x)
    zero = length == 0
    factor = radius / jnp.where(zero, 1, length)
    equal = radius / max(size(tree), 1) ** 0.5
    found = jax.tree.map(
        lambda x: jnp.where(zero, equal, x * factor.astype(x.dtype)), x
    )
    return restored(found, [tree], scale)


def projection_l2_ball(tree: PyTree, scale: Real = 1) -> PyTree:
    """The nearest tree of a length of at most `scale`.

        y = x min(1, scale / |x|)

    Args:
        tree: a tree of numbers.
        scale: the radius.

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
    found = jax.tree.map(lambda x: x * factor.astype(x.dtype), x)
    return restored(found, [tree], scale)
