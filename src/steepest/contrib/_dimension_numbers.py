"""Dimension numbers for Muon and GaLore: which axes are the rows and columns."""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
from jaxtyping import Array, PyTree

from ..core import (
    GradientTransformationExtraArgs,
    OptState,
    Param,
    Params,
    transformation,
    Updates,
)
from ..numerics import as_matrices, Axes, axes_of, from_matrices
from ..tree import first_difference, leaf_paths

# A tree like the params, or a prefix of it, with dimension numbers or `None` as leaves;
# or a function of the params that returns one.
NumbersOrFn: TypeAlias = PyTree | Callable[[Params], PyTree]

Row: TypeAlias = tuple[Axes | None, Any]  # the axes of a leaf, and the leaf


def map_numbers(
    name: str, f: Callable[[Any, Any], object], numbers: NumbersOrFn, tree: Params
) -> PyTree:
    """`f(numbers, leaf)` for each leaf of `tree` that is not `None`, in its structure.

    Args:
        name: name used in error messages.
        f: a function of the numbers of a leaf, maybe `None`, and the leaf.
        numbers: the dimension numbers from the user.
        tree: params or updates.
    """
    rows = _by_leaf(name, numbers, tree)
    results = [None if x is None else f(number, x) for number, x in rows]
    return jax.tree.structure(tree, is_leaf=_is_none).unflatten(results)


def axes_by_leaf(name: str, numbers: NumbersOrFn, tree: Params) -> list[Row]:
    """The axes, or `None`, of each leaf of `tree`, and the leaf, which may be `None`.

    Args:
        name: name used in error messages.
        numbers: the dimension numbers from the user.
        tree: params or updates.
    """
    rows = []
    pairs = zip(leaf_paths(tree), _by_leaf(name, numbers, tree), strict=True)
    for path, (number, x) in pairs:
        axes = None
        if x is not None and number is not None:
            ends = number.reduction_axis, number.output_axis
            axes = axes_of(f"{name}: leaf {path}", x.shape, *ends)
        rows.append((axes, x))
    return rows


@transformation
def of_matrices(
    name: str,
    tx: GradientTransformationExtraArgs,
    numbers: NumbersOrFn,
    memory: Sequence[str] = (),
) -> GradientTransformationExtraArgs:
    """Apply `tx`, which takes stacks of matrices, to tensors with dimension numbers.

    Args:
        name: name used in error messages.
        tx: a transformation whose state does not depend on shapes.
        numbers: the dimension numbers from the user; a leaf without them is a matrix.
        memory: the fields of the state that are shaped like the params.
    """

    def update(
        updates: Updates,
        state: OptState,
        params: Params | None = None,
        **extra_args: object,
    ) -> tuple[Updates, OptState]:
        pairs = axes_by_leaf(name, numbers, updates)
        paths = leaf_paths(updates)
        rows = [
            (axes or _plain(f"{name}: leaf {path}", g), g)
            for path, (axes, g) in zip(paths, pairs, strict=True)
        ]

        def fold(tree: PyTree) -> PyTree:
            return _map(lambda axes, _, x: as_matrices(x, axes), rows, tree)

        def unfold(tree: PyTree) -> PyTree:
            return _map(lambda axes, g, x: from_matrices(x, g.shape, axes), rows, tree)

        def remembering(f: Callable[[PyTree], PyTree], state: OptState) -> OptState:
            return state._replace(**{key: f(getattr(state, key)) for key in memory})

        u, state = tx.update(
            fold(updates),
            remembering(fold, state),
            None if params is None else fold(params),
            **extra_args,
        )
        return unfold(u), remembering(unfold, state)

    return GradientTransformationExtraArgs(tx.init, update)


def _map(f: Callable[..., Array], rows: Sequence[Row], tree: PyTree) -> PyTree:
    """`f(axes, leaf, x)` for each `x` in `tree` that has axes; others unchanged."""
    leaves, treedef = jax.tree.flatten(tree, is_leaf=_is_none)
    results = [
        x if x is None or axes is None else f(axes, g, jnp.asarray(x))
        for (axes, g), x in zip(rows, leaves, strict=True)
    ]
    return treedef.unflatten(results)


def _plain(name: str, x: Param | None) -> Axes | None:
    """The axes of a matrix without dimension numbers."""
    if x is None:
        return None
    if x.ndim != 2:
        raise ValueError(
            f"{name} has shape {x.shape} and no dimension numbers, expected two axes. "
            "Pass dimension numbers for it."
        )
    return Axes((), (0,), (1,))


def _by_leaf(name: str, numbers: NumbersOrFn, tree: Params) -> list[tuple[Any, Any]]:
    """The numbers, maybe `None`, of each leaf, and the leaf, maybe `None`."""
    if callable(numbers):
        numbers = numbers(tree)
    values, treedef = jax.tree.flatten(numbers, is_leaf=_is_number)
    try:
        parts = treedef.flatten_up_to(tree)
    except (KeyError, TypeError, ValueError):
        simple = treedef.unflatten([0] * len(values))
        difference = first_difference(tree, simple, ("tree", "dimension numbers"))
        raise ValueError(
            f"{name}: {difference}. Give the dimension numbers the structure of the "
            "params, or one for a whole subtree."
        ) from None
    rows = []
    for number, part in zip(values, parts, strict=True):
        if not _is_number(number):
            raise TypeError(
                f"{name}: got a {type(number).__name__} among the dimension numbers, "
                "expected an object with `reduction_axis` and `output_axis`, such as "
                "MuonDimensionNumbers(0, 1)."
            )
        for x in jax.tree.leaves(part, is_leaf=_is_none):
            array = x if x is None or hasattr(x, "shape") else jnp.asarray(x)
            rows.append((number, array))
    return rows


def _is_none(x: object) -> bool:
    return x is None


def _is_number(x: object) -> bool:
    return x is None or hasattr(x, "reduction_axis")
