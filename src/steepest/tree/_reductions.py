"""From a tree to a number: sums, extremes, products, lengths.

Half precision is summed in float32 and returned as it came: the length of a thousand
float16 numbers of 300 is 9487, but the sum of their squares is no float16 number.
"""

import functools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PyTree

from .. import check
from ..core import AxisName, mesh_axes, MeshAxes
from ..numerics import (
    at_least_float32,
    by_split,
    is_inexact,
    promoted,
    split_over,
    sqrt_or_zero,
    sum_of_squares,
    sum_over,
)
from ._map import map_numbers


class Part(NamedTuple):
    """What one leaf adds to a sum."""

    sum: Array  # in float32 or wider
    dtype: Any  # that in which it would have been without that


def sum(
    tree: PyTree, associative_reduction: bool = False, *, axis_name: AxisName = None
) -> Any:
    """The sum of all entries of all leaves; 0 for a tree without leaves.

    Args:
        tree: a tree of numbers.
        associative_reduction: whether the sums of the leaves are added in pairs, and
            these in pairs again: fewer roundings than one after the other.
        axis_name: inside `jax.shard_map`, the mesh axes over which the leaves are
            split. Without it, each device measures its own part.

    >>> sum({"w": jnp.array([1.0, 2.0]), "b": 3.0}).item()
    6.0
    """
    axes = mesh_axes("sum", axis_name)
    add = lambda x: _part(jnp.sum(at_least_float32(x)), x)
    parts = _each("sum", add, tree=tree)
    if not parts:
        return 0
    return _total(parts, axes, associative_reduction).astype(_dtype(parts))


def max(tree: PyTree, *, axis_name: AxisName = None) -> Any:
    """The largest entry of all leaves; -inf where there is none.

    Args:
        tree: a tree of real numbers.
        axis_name: inside `jax.shard_map`, the mesh axes over which the leaves are
            split. Without it, each device measures its own part.
    """
    found = _extreme("max", jnp.max, jnp.maximum, tree, -jnp.inf)
    where = split_over(mesh_axes("max", axis_name), found)
    return jax.lax.pmax(found, where) if where else found


def min(tree: PyTree, *, axis_name: AxisName = None) -> Any:
    """The smallest entry of all leaves; inf where there is none.

    Args:
        tree: a tree of real numbers.
        axis_name: inside `jax.shard_map`, the mesh axes over which the leaves are
            split. Without it, each device measures its own part.
    """
    found = _extreme("min", jnp.min, jnp.minimum, tree, jnp.inf)
    where = split_over(mesh_axes("min", axis_name), found)
    return jax.lax.pmin(found, where) if where else found


def size(tree: PyTree) -> int:
    """How many numbers there are in all leaves.

    Args:
        tree: a tree of arrays, numbers, or shapes with dtypes.
    """
    leaves = jax.tree.leaves(tree)
    shapes = [x.shape if hasattr(x, "shape") else np.shape(x) for x in leaves]
    return functools.reduce(operator.add, map(math.prod, shapes), 0)


def vdot(tree_x: PyTree, tree_y: PyTree, *, axis_name: AxisName = None) -> Any:
    """`sum conj(x) y` over all entries of all leaves.

    Args:
        tree_x: a tree of numbers.
        tree_y: a tree of the same structure, with leaves of the same sizes.
        axis_name: inside `jax.shard_map`, the mesh axes over which the leaves are
            split. Without it, each device measures its own part.
    """
    axes = mesh_axes("vdot", axis_name)

    def multiply(x: Any, y: Any) -> Part:
        with jax.numpy_dtype_promotion("standard"):
            found = jnp.vdot(
                at_least_float32(x), at_least_float32(y), precision="highest"
            )
        return _part(found, x, y)

    parts = _each("vdot", multiply, alike="size", tree_x=tree_x, tree_y=tree_y)
    return _total(parts, axes).astype(_dtype(parts)) if parts else 0


def norm(
    tree: PyTree,
    ord: int | float | str | None = None,
    squared: bool = False,
    *,
    axis_name: AxisName = None,
) -> Array:
    """The length of a tree, taken as one vector.

        ord 2 or None:  sqrt(sum |x|^2)
        ord 1:          sum |x|
        ord inf:        max |x|

    The slope at zero is zero. The norm of no entries is zero.

    Args:
        tree: a tree of numbers.
        ord: 1, 2 (also `None`), or infinity (also "inf").
        squared: whether to return the square of it.
        axis_name: inside `jax.shard_map`, the mesh axes over which the leaves are
            split. Without it, each device measures its own part.

    >>> norm({"w": jnp.array([3.0]), "b": jnp.array([4.0])}).item()
    5.0
    """
    return _norm("norm", tree, ord, squared, axis_name)


def _norm(
    name: str, tree: PyTree, ord: Any, squared: bool, axis_name: AxisName
) -> Array:
    axes = mesh_axes(name, axis_name)
    if ord is None or ord == 2:
        square = lambda x: _part(sum_of_squares(_inexact(x)), x)
        parts = _each(name, square, tree=tree)
        parts = parts or [_part(jnp.asarray(0.0), 0.0)]
        squares = _total(parts, axes)
        found = squares if squared else sqrt_or_zero(squares)
        return found.astype(_dtype(parts))
    if ord not in (1, jnp.inf, "inf"):
        raise ValueError(
            f"norm: Unsupported ord: {ord!r}, expected 1, 2, None or infinity."
        )
    sizes = _each(name, jnp.abs, tree=tree)
    if ord == 1:
        found = sum(sizes, axis_name=axis_name)
    else:
        found = max(sizes, axis_name=axis_name) if size(sizes) else 0.0
    return jnp.square(found) if squared else jnp.asarray(found)


def global_norm(updates: PyTree, *, axis_name: AxisName = None) -> Array:
    """`norm(updates)`, by its former name.

    Args:
        updates: a tree of numbers.
        axis_name: inside `jax.shard_map`, the mesh axes over which the leaves are
            split. Without it, each device measures its own part.
    """
    return _norm("global_norm", updates, None, False, axis_name)


def allclose(
    a: PyTree, b: PyTree, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False
) -> Any:
    """Whether `|x - y| <= atol + rtol |y|` for all entries `x` of `a`, `y` of `b`.

    Args:
        a: a tree of numbers.
        b: a tree of the same structure.
        rtol: how far they may be apart, as a part of `|y|`.
        atol: how far they may be apart.
        equal_nan: whether one NaN is as good as another.
    """
    check.unless_array(check.nonnegative, "allclose", rtol=rtol, atol=atol)

    def compare(x: Any, y: Any) -> Array:
        with jax.numpy_dtype_promotion("standard"):
            return jnp.allclose(x, y, rtol, atol, equal_nan)

    found = _each("allclose", compare, a=a, b=b)
    return functools.reduce(jnp.logical_and, found) if found else True


def _inexact(x: Any) -> Array:
    """`x` in float32 or wider; integers too, whose squares would overflow."""
    x = at_least_float32(x)
    return x if is_inexact(x) else x.astype(float)


def _part(found: Array, *leaves: Any) -> Part:
    """`found`, with the dtype it would have if half precision were summed as it is."""
    own = promoted(*leaves)
    if jnp.issubdtype(own, jnp.inexact) and jnp.finfo(own).bits < 32:
        return Part(found, own)
    return Part(found, found.dtype)


def _dtype(parts: Sequence[Part]) -> Any:
    return promoted(*[part.dtype for part in parts])


def _total(
    parts: Sequence[Part], axes: MeshAxes | None, pairwise: bool = False
) -> Array:
    """The sum of the parts, on all devices: with one sum over devices for each group.

    A part varies over the mesh axes over which its leaf does.
    """
    groups = by_split(axes, [part.sum for part in parts]).items()
    sums = [
        sum_over(where, _added([parts[k].sum for k in places], pairwise))
        for where, places in groups
    ]
    return _added(sums, pairwise)


def _added(sums: list[Array], pairwise: bool) -> Array:
    with jax.numpy_dtype_promotion("standard"):
        while pairwise and len(sums) > 1:
            pairs = zip(sums[::2], [*sums[1::2], 0], strict=False)
            sums = [x + y for x, y in pairs]
        return functools.reduce(operator.add, sums)


def _extreme(
    name: str,
    of_one: Callable[[Any], Array],
    of_two: Callable[[Any, Any], Array],
    tree: PyTree,
    start: float,
) -> Any:
    with jax.numpy_dtype_promotion("standard"):
        found = _each(name, lambda x: of_one(x) if np.size(x) else None, tree=tree)
        return functools.reduce(of_two, [x for x in found if x is not None], start)


def _each(name: str, f: Callable[..., Any], **trees: Any) -> list[Any]:
    """What `f` makes of each leaf, or of those of several trees side by side."""
    found: list[Any] = []
    map_numbers(name, lambda *row: found.append(f(*row)), **trees)
    return found
