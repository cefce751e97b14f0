"""Reductions of a tree to a number: sums, extremes, inner products, norms.

Half precision is summed in float32 and returned in its own dtype: the norm of a
thousand float16 numbers of 300 is 9487, but the sum of their squares overflows float16.
"""

import functools
import math
import operator
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
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

T = TypeVar("T")


class LeafSum(NamedTuple):
    """The contribution of one leaf to a sum."""

    sum: Array  # in float32 or wider
    dtype: np.dtype  # the dtype to return it in


def sum(
    tree: PyTree, associative_reduction: bool = False, *, axis_name: AxisName = None
) -> Array | int:
    """The sum of all entries of all leaves; 0 for a tree without leaves.

    Args:
        tree: a tree of numbers.
        associative_reduction: whether the sums of the leaves are added pairwise, which
            rounds less than adding them one after the other.
        axis_name: inside `jax.shard_map`, the mesh axes over which the leaves are
            split. Without it, each device measures its own shard.

    >>> import jax.numpy as jnp
    >>> sum({"w": jnp.array([1.0, 2.0]), "b": 3.0}).item()
    6.0
    """
    axes = mesh_axes("sum", axis_name)
    add = lambda x: _part(jnp.sum(at_least_float32(x)), x)
    parts = _each("sum", add, tree=tree)
    if not parts:
        return 0
    return _total(parts, axes, associative_reduction).astype(_dtype(parts))


def max(tree: PyTree, *, axis_name: AxisName = None) -> Array | float:
    """The largest entry of all leaves; -inf if there are none.

    Args:
        tree: a tree of real numbers.
        axis_name: inside `jax.shard_map`, the mesh axes over which the leaves are
            split. Without it, each device measures its own shard.
    """
    largest = _extreme("max", jnp.max, jnp.maximum, tree, -jnp.inf)
    where = split_over(mesh_axes("max", axis_name), largest)
    return jax.lax.pmax(largest, where) if where else largest


def min(tree: PyTree, *, axis_name: AxisName = None) -> Array | float:
    """The smallest entry of all leaves; inf if there are none.

    Args:
        tree: a tree of real numbers.
        axis_name: inside `jax.shard_map`, the mesh axes over which the leaves are
            split. Without it, each device measures its own shard.
    """
    smallest = _extreme("min", jnp.min, jnp.minimum, tree, jnp.inf)
    where = split_over(mesh_axes("min", axis_name), smallest)
    return jax.lax.pmin(smallest, where) if where else smallest


def size(tree: PyTree) -> int:
    """The number of entries in all leaves.

    Args:
        tree: a tree of arrays, numbers or `ShapeDtypeStruct`s.
    """
    leaves = jax.tree.leaves(tree)
    shapes = [x.shape if hasattr(x, "shape") else np.shape(x) for x in leaves]
    return functools.reduce(operator.add, map(math.prod, shapes), 0)


def vdot(tree_x: PyTree, tree_y: PyTree, *, axis_name: AxisName = None) -> Array | int:
    """`sum conj(x) y` over all entries of all leaves.

    Args:
        tree_x: a tree of numbers.
        tree_y: a tree of the same structure, with leaves of the same sizes.
        axis_name: inside `jax.shard_map`, the mesh axes over which the leaves are
            split. Without it, each device measures its own shard.
    """
    axes = mesh_axes("vdot", axis_name)

    def multiply(x: ArrayLike, y: ArrayLike) -> LeafSum:
        with jax.numpy_dtype_promotion("standard"):
            product = jnp.vdot(
                at_least_float32(x), at_least_float32(y), precision="highest"
            )
        return _part(product, x, y)

    parts = _each("vdot", multiply, alike="size", tree_x=tree_x, tree_y=tree_y)
    return _total(parts, axes).astype(_dtype(parts)) if parts else 0


def norm(
    tree: PyTree,
    ord: int | float | str | None = None,
    squared: bool = False,
    *,
    axis_name: AxisName = None,
) -> Array:
    """The norm of a tree, taken as one vector.

        ord 2 or None:  sqrt(sum |x|^2)
        ord 1:          sum |x|
        ord inf:        max |x|

    The gradient at zero is zero. The norm of an empty tree is zero.

    Args:
        tree: a tree of numbers.
        ord: 1, 2 (also `None`), or infinity (also "inf").
        squared: whether to return the squared norm.
        axis_name: inside `jax.shard_map`, the mesh axes over which the leaves are
            split. Without it, each device measures its own shard.

    >>> import jax.numpy as jnp
    >>> norm({"w": jnp.array([3.0]), "b": jnp.array([4.0])}).item()
    5.0
    """
    return _norm("norm", tree, ord, squared, axis_name)


def _norm(
    name: str,
    tree: PyTree,
    ord: int | float | str | None,
    squared: bool,
    axis_name: AxisName,
) -> Array:
    axes = mesh_axes(name, axis_name)
    if ord is None or ord == 2:
        square = lambda x: _part(sum_of_squares(_inexact(x)), x)
        parts = _each(name, square, tree=tree)
        parts = parts or [_part(jnp.asarray(0.0), 0.0)]
        squares = _total(parts, axes)
        length = squares if squared else sqrt_or_zero(squares)
        return length.astype(_dtype(parts))
    if ord not in (1, jnp.inf, "inf"):
        raise ValueError(
            f"norm: Unsupported ord: {ord!r}, expected 1, 2, None or infinity."
        )
    sizes = _each(name, jnp.abs, tree=tree)
    if ord == 1:
        length = sum(sizes, axis_name=axis_name)
    else:
        length = max(sizes, axis_name=axis_name) if size(sizes) else 0.0
    return jnp.square(length) if squared else jnp.asarray(length)


def global_norm(updates: PyTree, *, axis_name: AxisName = None) -> Array:
    """`norm(updates)`, under its former name.

    Args:
        updates: a tree of numbers.
        axis_name: inside `jax.shard_map`, the mesh axes over which the leaves are
            split. Without it, each device measures its own shard.
    """
    return _norm("global_norm", updates, None, False, axis_name)


def allclose(
    a: PyTree,
    b: PyTree,
    rtol: ArrayLike = 1e-05,
    atol: ArrayLike = 1e-08,
    equal_nan: bool = False,
) -> Array | bool:
    """Whether `|x - y| <= atol + rtol |y|` for all entries `x` of `a`, `y` of `b`.

    Args:
        a: a tree of numbers.
        b: a tree of the same structure.
        rtol: relative tolerance.
        atol: absolute tolerance.
        equal_nan: whether NaN equals NaN.
    """
    check.unless_array(check.nonnegative, "allclose", rtol=rtol, atol=atol)

    def compare(x: ArrayLike, y: ArrayLike) -> Array:
        with jax.numpy_dtype_promotion("standard"):
            return jnp.allclose(x, y, rtol, atol, equal_nan)

    close = _each("allclose", compare, a=a, b=b)
    return functools.reduce(jnp.logical_and, close) if close else True


def _inexact(x: ArrayLike) -> Array:
    """`x` in float32 or wider; also integers, whose squares would overflow."""
    x = at_least_float32(x)
    return x if is_inexact(x) else x.astype(float)


def _part(value: Array, *leaves: ArrayLike) -> LeafSum:
    """`value`, with half precision as its dtype if the leaves have that."""
    own = promoted(*leaves)
    if jnp.issubdtype(own, jnp.inexact) and jnp.finfo(own).bits < 32:
        return LeafSum(value, own)
    return LeafSum(value, value.dtype)


def _dtype(parts: Sequence[LeafSum]) -> np.dtype:
    return promoted(*[part.dtype for part in parts])


def _total(
    parts: Sequence[LeafSum], axes: MeshAxes | None, pairwise: bool = False
) -> Array:
    """The sum of the parts over all devices, with one `psum` for each group.

    A part varies over the same mesh axes as its leaf.
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
    of_one: Callable[[ArrayLike], Array],
    of_two: Callable[[ArrayLike, ArrayLike], Array],
    tree: PyTree,
    start: float,
) -> Array | float:
    with jax.numpy_dtype_promotion("standard"):
        extremes = _each(name, lambda x: of_one(x) if np.size(x) else None, tree=tree)
        return functools.reduce(of_two, [x for x in extremes if x is not None], start)


def _each(name: str, f: Callable[..., T], **trees: PyTree) -> list[T]:
    """The results of `f` for each leaf, or for matching leaves of several trees."""
    results: list[T] = []
    map_numbers(name, lambda *row: results.append(f(*row)), **trees)
    return results
