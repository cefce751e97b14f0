"""A tensor as matrices, and back.

A layer `y = x W` sums over some axes of `W`, the reduction axes, and keeps others, the
output axes. The remaining axes are batch axes: each index along them is one matrix.
"""

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Inexact


class Axes(NamedTuple):
    """The role of each axis of a tensor; each axis appears once."""

    batch: tuple[int, ...]
    reduction: tuple[int, ...]
    output: tuple[int, ...]


def axes_of(
    name: str,
    shape: Sequence[int],
    reduction: int | Sequence[int],
    output: int | Sequence[int],
) -> Axes:
    """The axes of a tensor of this shape, as non-negative numbers.

    Args:
        name: name used in error messages, with the leaf.
        shape: shape of the tensor.
        reduction: one axis or several; negative axes count from the end.
        output: likewise; no axis may be in both.
    """
    ndim = len(shape)
    groups = [(x,) if isinstance(x, int) else tuple(x) for x in (reduction, output)]
    named = f"reduction axes {groups[0]} and output axes {groups[1]}"
    if ndim < 2:
        raise ValueError(
            f"{name}: shape {tuple(shape)} has {named}, expected at least two axes. "
            "Give dimension numbers to matrices only."
        )
    if any(not -ndim <= axis < ndim for group in groups for axis in group):
        raise ValueError(
            f"{name}: shape {tuple(shape)} has {named}, expected each in [{-ndim}, "
            f"{ndim})."
        )
    rows, columns = (tuple(axis % ndim for axis in group) for group in groups)
    if len({*rows, *columns}) < len(rows) + len(columns):
        raise ValueError(
            f"{name}: shape {tuple(shape)} has {named}, expected each axis at most "
            "once."
        )
    rest = tuple(axis for axis in range(ndim) if axis not in (*rows, *columns))
    return Axes(rest, rows, columns)


def as_matrices(x: Inexact[Array, "..."], axes: Axes) -> Inexact[Array, "b m n"]:
    """`x` as a stack of matrices: rows are reduction axes, columns are output axes."""
    sizes = [prod(x.shape[axis] for axis in row) for row in axes]
    return x.transpose(_order(axes)).reshape(sizes)


def from_matrices(
    y: Inexact[Array, "b m n"], shape: Sequence[int], axes: Axes
) -> Inexact[Array, "..."]:
    """Undo `as_matrices`: a stack of matrices back to a tensor.

    Args:
        y: a stack of matrices.
        shape: shape of the tensor.
        axes: the axes given to `as_matrices`.
    """
    order = _order(axes)
    back = sorted(range(len(order)), key=order.__getitem__)
    return jnp.reshape(y, [shape[axis] for axis in order]).transpose(back)


def _order(axes: Axes) -> tuple[int, ...]:
    return (*axes.batch, *axes.reduction, *axes.output)
