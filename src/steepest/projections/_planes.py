"""Projections onto a line, a hyperplane and a halfspace."""

from collections.abc import Callable
from contextlib import AbstractContextManager

import jax
import jax.numpy as jnp
from jaxtyping import Array, PyTree

from .. import check
from ..core import Real
from ..tree import add_scale, map_numbers, scale, vdot
from ._precision import restored, scaled, widened


def projection_vector(x: PyTree, a: PyTree) -> PyTree:
    """The nearest multiple of `a`.

        y = <a, x> / <a, a> a

    Args:
        x: a tree of numbers.
        a: a tree of the same structure. If `a` is zero, so is the result.

    >>> import jax.numpy as jnp
    >>> projection_vector(jnp.array([3.0, 4.0]), jnp.array([2.0, 0.0])).tolist()
    [3.0, 0.0]
    """
    wide_x, unit_a, _ = _prepared("projection_vector", x, a)
    square = _square(unit_a)
    with _mixing():
        factor = _product(unit_a, wide_x) / jnp.where(square == 0, 1, square)
        nearest = scale(factor, unit_a)
    return restored(nearest, [x, a])


def projection_hyperplane(x: PyTree, a: PyTree, b: Real) -> PyTree:
    """The nearest `y` with `<a, y> = b`.

        y = x - (<a, x> - b) / <a, a> a

    Args:
        x: a tree of numbers.
        a: the normal: a tree of the same structure.
        b: a number. If `a` is zero, every `y` is in the plane if `b` is zero. If `b`
            is not zero, none is, and the result is NaN.
    """
    check.finite("projection_hyperplane", b=b)
    return _moved("projection_hyperplane", lambda gap: gap, x, a, b)


def projection_halfspace(x: PyTree, a: PyTree, b: Real) -> PyTree:
    """The nearest `y` with `<a, y> <= b`.

        y = x - max(<a, x> - b, 0) / <a, a> a

    For complex numbers, with the real part of `<a, y>`.

    Args:
        x: a tree of numbers.
        a: the normal, which points outwards: a tree of the same structure.
        b: a number. If `a` is zero, every `y` is in the halfspace if `b` is not
            negative. If `b` is negative, none is, and the result is NaN.
    """
    check.real("projection_halfspace", b=b)
    outside = lambda gap: jnp.maximum(gap.real, 0)
    return _moved("projection_halfspace", outside, x, a, b)


def _moved(
    name: str, excess: Callable[[Array], Array], x: PyTree, a: PyTree, b: Real
) -> PyTree:
    """`x`, moved along `a` until `excess(<a, x> - b)` is zero."""
    wide_x, unit_a, unit = _prepared(name, x, a)
    square = _square(unit_a)
    with _mixing():
        product = _product(unit_a, wide_x)
        gap = excess(product - jnp.asarray(b).astype(product.dtype) / unit)
        # A zero normal cannot close a gap: the result is NaN unless the gap is zero.
        none = jnp.where(gap == 0, 0, jnp.nan).astype(gap.dtype)
        factor = jnp.where(square == 0, none, gap / jnp.where(square == 0, 1, square))
        nearest = add_scale(wide_x, -factor, unit_a)
    return restored(nearest, [x, a], b)


def _prepared(name: str, x: PyTree, a: PyTree) -> tuple[PyTree, PyTree, Array]:
    """`x` in the compute dtype, `a / unit`, and the unit."""
    wide_x, wide_a = widened(name, x=x, a=a)
    map_numbers(name, _check_shapes, alike="shape", x=wide_x, a=wide_a)
    return wide_x, *scaled(wide_a)


def _check_shapes(x: Array, a: Array) -> None:
    if x.shape != a.shape:
        raise ValueError(f"the shapes {x.shape} and {a.shape} differ")


def _mixing() -> AbstractContextManager[object]:
    """Allow real and complex numbers to mix, even in strict promotion mode."""
    return jax.numpy_dtype_promotion("standard")


def _product(a: PyTree, x: PyTree) -> Array:
    """`<a, x>`; a floating zero for trees without leaves."""
    return jnp.asarray(vdot(a, x)) if jax.tree.leaves(a) else jnp.zeros(())


def _square(a: PyTree) -> Array:
    return jnp.real(_product(a, a))
