"""Running averages of trees, for custom transformations.

Half precision is computed in float32 and returned in its own dtype.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, PyTree

from .. import check
from ..core import Real
from ..numerics import abs_sq, at_least_float32, debias, is_inexact, promoted
from ._map import map_numbers


def update_moment(updates: PyTree, moments: PyTree, decay: Real, order: Real) -> PyTree:
    """`decay m + (1 - decay) g^order`, leaf by leaf; `None` where `g` is `None`.

    Args:
        updates: the tree of `g`.
        moments: the tree of `m`, the averages so far.
        decay: decay rate of the averages, in [0, 1].
        order: the power.
    """
    check.unless_array(check.finite, "update_moment", order=order)
    return _average("update_moment", lambda g: g**order, updates, moments, decay)


def update_moment_per_elem_norm(
    updates: PyTree, moments: PyTree, decay: Real, order: Real
) -> PyTree:
    """`decay m + (1 - decay) |g|^order`, leaf by leaf; `None` where `g` is `None`.

    For real `g` and a whole `order` it is `g^order`, which keeps the sign.

    Args:
        updates: the tree of `g`.
        moments: the tree of `m`, the averages so far; real also for complex `g`.
        decay: decay rate of the averages, in [0, 1].
        order: the power.
    """
    check.unless_array(check.finite, "update_moment_per_elem_norm", order=order)

    def power(g: Array) -> Array:
        if order == 2 and is_inexact(g):
            return abs_sq(g)
        whole = isinstance(order, int) or float(order).is_integer()
        return (g if whole and jnp.isrealobj(g) else jnp.abs(g)) ** order

    return _average("update_moment_per_elem_norm", power, updates, moments, decay)


def update_infinity_moment(
    updates: PyTree, moments: PyTree, decay: Real, eps: Real
) -> PyTree:
    """`max(|g| + eps, decay m)`, leaf by leaf; `None` where `g` is `None`.

    Args:
        updates: the tree of `g`.
        moments: the tree of `m`, the largest values so far.
        decay: decay rate of `m`, in [0, 1].
        eps: the smallest value that is returned.
    """
    check.unless_array(check.fraction, "update_infinity_moment", decay=decay)
    check.unless_array(check.nonnegative, "update_infinity_moment", eps=eps)

    def largest(g: Array, m: Array) -> Array:
        return jnp.maximum(jnp.abs(g) + check.number(eps), check.number(decay) * m)

    return _moments("update_infinity_moment", largest, updates, moments, (decay, eps))


def bias_correction(moment: PyTree, decay: Real, count: ArrayLike) -> PyTree:
    """`m / (1 - decay^count)`: the bias correction of an average that began at zero.

    Args:
        moment: the tree of `m`.
        decay: decay rate of the average, in [0, 1).
        count: the number of steps since it began, above 0.
    """
    check.unless_array(check.fraction, "bias_correction", decay=decay)
    check.unless_array(check.positive, "bias_correction", count=count)
    whole = debias(check.number(decay), jnp.asarray(count))

    def correct(m: ArrayLike) -> Array:
        wide = at_least_float32(m)
        wide = wide if is_inexact(wide) else wide.astype(float)
        corrected = wide / whole.astype(wide.real.dtype)
        return corrected.astype(promoted(m, 1.0))

    with jax.numpy_dtype_promotion("standard"):
        return map_numbers(
            "bias_correction", correct, {"the correction": whole}, moment=moment
        )


def _average(
    name: str,
    power: Callable[[Array], Array],
    updates: PyTree,
    moments: PyTree,
    decay: Real,
) -> PyTree:
    check.unless_array(check.fraction, name, decay=decay)

    def step(g: Array, m: Array) -> Array:
        return check.number(decay) * m + (1 - check.number(decay)) * power(g)

    return _moments(name, step, updates, moments, (decay,))


def _moments(
    name: str,
    step: Callable[[Array, Array], Array],
    updates: PyTree,
    moments: PyTree,
    numbers: tuple[Real, ...],
) -> PyTree:
    """`step(g, m)` for every leaf, in float32 or wider, cast to their common dtype."""

    def leaf(g: ArrayLike | None, m: ArrayLike | None) -> Array | None:
        if g is None:
            return None
        if m is None:
            raise TypeError(
                f"{name}: a leaf of the moments is None where the updates have an "
                "array. Initialize the moments with `zeros_like(updates)`."
            )
        own = promoted(g, m, *numbers, 1.0)
        with jax.numpy_dtype_promotion("standard"):
            moment = step(at_least_float32(g), at_least_float32(m))
        narrow = jnp.finfo(own).bits < 32
        return moment.astype(own if narrow else promoted(moment.dtype, *numbers))

    return map_numbers(name, leaf, none_is_leaf=True, updates=updates, moments=moments)
