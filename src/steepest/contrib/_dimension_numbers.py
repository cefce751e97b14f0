"""Which axes of each leaf make it a matrix: told to Muon and GaLore, leaf by leaf."""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp

from ..core import (
    GradientTransformationExtraArgs,
    OptState,
    Params,
    transformation,
    Updates,
)
from ..numerics import as_matrices, Axes, axes_of, from_matrices
from ..tree import first_difference, leaf_paths

# Numbers in the structure of the params, one for a whole subtree where that is enough,
# `None` where there are none; or a function that makes them of the params.
NumbersOrFn: TypeAlias = Any


def map_numbers(
    name: str, f: Callable[[Any, Any], Any], numbers: NumbersOrFn, tree: Params
) -> Any:
    """`f(numbers, leaf)` for each leaf of `tree`, in its structure; `None` as it is.

    Args:
        name: name used in error messages.
        f: a function of the numbers of a leaf, maybe `None`, and of the leaf.
        numbers: as they were given.
        tree: params or updates.
    """
    rows = _by_leaf(name, numbers, tree)
    found = [None if x is None else f(number, x) for number, x in rows]
    return jax.tree.structure(tree, is_leaf=_is_none).unflatten(found)


def axes_by_leaf(
    name: str, numbers: NumbersOrFn, tree: Params
) -> list[tuple[Axes | None, Any]]:
    """Each leaf of `tree`, also a `None`, and its axes; `None` for a leaf without.

    Args:
        name: name used in error messages.
        numbers: as they were given.
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
    who: str,
    tx: GradientTransformationExtraArgs,
    numbers: NumbersOrFn,
    memory: Sequence[str] = (),
) -> GradientTransformationExtraArgs:
    """`tx`, which takes stacks of matrices, for tensors that these numbers describe.

    Args:
        who: name used in error messages.
        tx: a transformation whose state does not look at shapes.
        numbers: as they were given; a leaf without is a matrix.
        memory: the fields of the state that look like the params.
    """

    def update(
        updates: Updates,
        state: OptState,
        params: Params | None = None,
        **extra_args: Any,
    ) -> tuple[Updates, OptState]:
        found = axes_by_leaf(who, numbers, updates)
        paths = leaf_paths(updates)
        rows = [
            (axes or _plain(f"{who}: leaf {path}", g), g)
            for path, (axes, g) in zip(paths, found, strict=True)
        ]

        def fold(tree: Any) -> Any:
            return _map(lambda axes, _, x: as_matrices(x, axes), rows, tree)

        def unfold(tree: Any) -> Any:
            return _map(lambda axes, g, x: from_matrices(x, g.shape, axes), rows, tree)

        def remembering(f: Callable[[Any], Any], state: OptState) -> OptState:
            return state._replace(**{name: f(getattr(state, name)) for name in memory})

        u, state = tx.update(
            fold(updates),
            remembering(fold, state),
            None if params is None else fold(params),
            **extra_args,
        )
        return unfold(u), remembering(unfold, state)

    return GradientTransformationExtraArgs(tx.init, update)


def _map(f: Callable[..., Any], rows: Sequence[Any], tree: Any) -> Any:
    """`f(axes, leaf, x)` for each `x` in `tree`; others as they are."""
    leaves, treedef = jax.tree.flatten(tree, is_leaf=_is_none)
    found = [
        x if x is None or axes is None else f(axes, g, jnp.asarray(x))
        for (axes, g), x in zip(rows, leaves, strict=True)
    ]
    return treedef.unflatten(found)


def _plain(name: str, x: Any) -> Axes | None:
    """The axes of a matrix that nobody has described."""
    if x is None:
        return None
    if x.ndim != 2:
        raise ValueError(
            f"{name}: shape {x.shape} has no dimension numbers, expected two axes. "
            "Give it some."
        )
    return Axes((), (0,), (1,))


def _by_leaf(name: str, numbers: NumbersOrFn, tree: Params) -> list[tuple[Any, Any]]:
    """Each leaf, also a `None`, after its numbers, maybe `None`."""
    if callable(numbers):
        numbers = numbers(tree)
    found, treedef = jax.tree.flatten(numbers, is_leaf=_is_number)
    try:
        parts = treedef.flatten_up_to(tree)
    except (KeyError, TypeError, ValueError):
        simple = treedef.unflatten([0] * len(found))
        difference = first_difference(tree, simple, ("tree", "dimension numbers"))
        raise ValueError(
            f"{name}: {difference}. Give the dimension numbers the structure of the "
            "params, or one for a whole subtree."
        ) from None
    rows = []
    for number, part in zip(found, parts, strict=True):
        if not _is_number(number):
            raise TypeError(
                f"{name}: there is a {type(number).__name__} among the dimension "
                "numbers, expected `reduction_axis` and `output_axis`, such as "
                "MuonDimensionNumbers(0, 1) has."
            )
        for x in jax.tree.leaves(part, is_leaf=_is_none):
            array = x if x is None or hasattr(x, "shape") else jnp.asarray(x)
            rows.append((number, array))
    return rows


def _is_none(x: Any) -> bool:
    return x is None


def _is_number(x: Any) -> bool:
    return x is None or hasattr(x, "reduction_axis")
