"""Projections onto the simplex, and onto the ball and sphere of the L1 norm.

Duchi, Shalev-Shwartz, Singer and Chandra, Efficient projections onto the l1-ball for
learning in high dimensions, 2008
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, PyTree

from .. import check
from ..core import Real
from ..numerics import is_inexact, simplex
from ..tree import map_numbers, size
from ._precision import real_array


def projection_simplex(tree: PyTree, scale: Real = 1) -> PyTree:
    """The nearest tree of non-negative numbers whose sum, over all leaves, is `scale`.

        y = max(x - tau, 0),  with tau such that  sum y = scale

    Half precision and integers are returned in float32.

    Args:
        tree: a tree of real numbers, with at least one entry.
        scale: the sum.

    >>> import jax.numpy as jnp
    >>> projection_simplex({"w": jnp.array([0.5, 1.0])})["w"].tolist()
    [0.25, 0.75]
    """
    name = "projection_simplex"
    scale, *_ = check.amount.must(name, scale=scale)
    flat, unravel = _ravel(name, map_numbers(name, real_array, real=True, tree=tree))
    return unravel(simplex(flat, scale))


def projection_l1_sphere(tree: PyTree, scale: Real = 1) -> PyTree:
    """The nearest tree whose absolute values `|y|` sum to `scale`.

        y = sign(x) simplex(|x|)

    At zero there are many; the one with positive entries is returned.

    Args:
        tree: a tree of numbers, with at least one entry.
        scale: the sum.
    """
    name = "projection_l1_sphere"
    scale, *_ = check.amount.must(name, scale=scale)
    flat, unravel = _ravel(name, tree)
    return unravel(_sphere(flat, scale))


def projection_l1_ball(tree: PyTree, scale: Real = 1) -> PyTree:
    """The nearest tree whose absolute values `|y|` sum to at most `scale`.

    Args:
        tree: a tree of numbers, with at least one entry.
        scale: the radius.
    """
    name = "projection_l1_ball"
    scale, *_ = check.nonnegative.must(name, scale=scale)
    flat, unravel = _ravel(name, tree)
    outside = _sphere(flat, scale)
    inside = flat.astype(outside.dtype)
    nearest = jnp.where(jnp.sum(jnp.abs(inside)) <= scale, inside, outside)
    return unravel(nearest.astype(flat.dtype) if is_inexact(flat) else nearest)


def _sphere(x: Array, scale: Real) -> Array:
    sizes = simplex(jnp.abs(x), scale)
    signs = jnp.where(x == 0, 1, jnp.sign(x))
    if jnp.iscomplexobj(x):
        return signs * sizes.astype(x.dtype)
    return signs.astype(sizes.dtype) * sizes


def _ravel(name: str, tree: PyTree) -> tuple[Array, Callable[[Array], PyTree]]:
    """The tree as one vector, and the function that undoes it."""
    tree = map_numbers(name, jnp.asarray, tree=tree)
    if size(tree) == 0:
        raise IndexError(f"{name}: the tree has no entries, expected at least one.")
    with jax.numpy_dtype_promotion("standard"):
        return ravel_pytree(tree)
