"""The nearest point of a line, of a hyperplane, and of all on one side of it."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

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
        a: a tree of the same structure. Of zero, zero is the only multiple.

    >>> projection_vector(jnp.array([3.0, 4.0]), jnp.array([2.0, 0.0])).tolist()
    [3.0, 0.0]
    """
    wide_x, unit_a, _ = _prepared("projection_vector", x, a)
    square = _square(unit_a)
    with _mixing():
        factor = _product(unit_a, wide_x) / jnp.where(square == 0, 1, square)
        found = scale(factor, unit_a)
    return restored(found, [x, a])


def projection_hyperplane(x: PyTree, a: PyTree, b: Real) -> PyTree:
    """The nearest `y` with `<a, y> = b`.

        y = x - (<a, x> - b) / <a, a> a

    Args:
        x: a tree of numbers.
        a: the normal: a tree of the same structure.
        b: the number. With `a` zero, all is in the plane if `b` is zero, and nothing,
            so that the answer is NaN, if it is not.
    """
    check.finite("projection_hyperplane", b=b)
    return _moved("projection_hyperplane", lambda gap: gap, x, a, b)


def projection_halfspace(x: PyTree, a: PyTree, b: Real) -> PyTree:
    """The nearest `y` with `<a, y> <= b`.

        y = x - max(<a, x> - b, 0) / <a, a> a

    Of complex numbers, with the real part of `<a, y>`.

    Args:
        x: a tree of numbers.
        a: the normal, which points outwards: a tree of the same structure.
        b: the number, as for `projection_hyperplane`.
    """
    check.real("projection_halfspace", b=b)
    outside = lambda gap: jnp.maximum(gap.real, 0)
    return _moved("projection_halfspace", outside, x, a, b)


def _moved(
    name: str, excess: Callable[[Array], Array], x: PyTree, a: PyTree, b: Real
) -> PyTree:
    """`x`, moved along `a` so that `excess(<a, x> - b)` is gone."""
    wide_x, unit_a, unit = _prepared(name, x, a)
    square = _square(unit_a)
    with _mixing():
        product = _product(unit_a, wide_x)
        gap = excess(product - jnp.asarray(b).astype(product.dtype) / unit)
        # With a zero normal there is nowhere to go, nor a need to if the gap is zero.
        none = jnp.where(gap == 0, 0, jnp.nan).astype(gap.dtype)
        factor = jnp.where(square == 0, none, gap / jnp.where(square == 0, 1, square))
        found = add_scale(wide_x, -factor, unit_a)
    return restored(found, [x, a], b)


def _prepared(name: str, x: PyTree, a: PyTree) -> tuple[PyTree, PyTree, Array]:
    """`x` to compute with, `a / unit`, and the unit."""
    wide_x, wide_a = widened(name, x=x, a=a)
    map_numbers(name, _check_shapes, alike="shape", x=wide_x, a=wide_a)
    return wide_x, *scaled(wide_a)


def _check_shapes(x: Array, a: Array) -> None:
    if x.shape != a.shape:
        raise ValueError(f"the shapes {x.shape} and {a.shape} differ")


def _mixing() -> AbstractContextManager[Any]:
    """Let real numbers meet complex ones, also where JAX is strict."""
    return jax.numpy_dtype_promotion("standard")


def _product(a: PyTree, x: PyTree) -> Array:
    """`<a, x>`; zero, and not the integer, for trees without leaves."""
    return vdot(a, x) if jax.tree.leaves(a) else jnp.zeros(())


def _square(a: PyTree) -> Array:
    return jnp.real(_product(a, a))
