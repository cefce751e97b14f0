"""A tensor as matrices, and back.

A layer `y = x W` sums over some axes of `W`, the reduction axes, and leaves others, the
output axes. What is left of its axes counts layers: each has a matrix of its own.
"""

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Inexact


class Axes(NamedTuple):
    """Which axes of a tensor are which; each of them once."""

    batch: tuple[int, ...]
    reduction: tuple[int, ...]
    output: tuple[int, ...]


def axes_of(
    name: str, shape: Sequence[int], reduction: int | Sequence[int], output: Any
) -> Axes:
    """The axes of a tensor of this shape, counted from the front.

    Args:
        name: who speaks in an error, and of which leaf.
        shape: of the tensor.
        reduction: one axis or several, also counted from the back.
        output: likewise; no axis may be in both.
    """
    ndim = len(shape)
    found = [(x,) if isinstance(x, int) else tuple(x) for x in (reduction, output)]
    named = f"reduction axes {found[0]} and output axes {found[1]}"
    if ndim < 2:
        raise ValueError(
            f"{name}: shape {tuple(shape)} has {named}, expected two axes or more. "
            "Give numbers to matrices alone."
        )
    if any(not -ndim <= axis < ndim for row in found for axis in row):
        raise ValueError(
            f"{name}: shape {tuple(shape)} has {named}, expected each in [{-ndim}, "
            f"{ndim})."
        )
    rows, columns = (tuple(axis % ndim for axis in row) for row in found)
    if len({*rows, *columns}) < len(rows) + len(columns):
        raise ValueError(
            f"{name}: shape {tuple(shape)} has {named}, expected no axis twice."
        )
    rest = tuple(axis for axis in range(ndim) if axis not in (*rows, *columns))
    return Axes(rest, rows, columns)


def as_matrices(x: Inexact[Array, "..."], axes: Axes) -> Inexact[Array, "b m n"]:
    """`x` as a stack of matrices, from the reduction axes to the output axes."""
    sizes = [prod(x.shape[axis] for axis in row) for row in axes]
    return x.transpose(_order(axes)).reshape(sizes)


def from_matrices(
    y: Inexact[Array, "b m n"], shape: Sequence[int], axes: Axes
) -> Inexact[Array, "..."]:
    """What `as_matrices` made `y` of, or something in its shape.

    Args:
        y: a stack of matrices.
        shape: of the tensor.
        axes: as they were in `as_matrices`.
    """
    order = _order(axes)
    back = sorted(range(len(order)), key=order.__getitem__)
    return jnp.reshape(y, [shape[axis] for axis in order]).transpose(back)


def _order(axes: Axes) -> tuple[int, ...]:
    return (*axes.batch, *axes.reduction, *axes.output)
