"""Masks: which leaves a transformation may touch."""

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias, TypeGuard

import jax
import numpy as np
from jax.core import Tracer
from jaxtyping import PyTree

from ...core import like_optax, OptState, Params
from ...tree import as_patterns, first_difference, matching, values_by_keys
from ._leaves import Leaves, MaskedNode

MaskTree: TypeAlias = PyTree  # booleans: like the params, or one for a whole subtree
# A tree, a function that makes one, or a regular expression for the paths of leaves.
MaskOrFn: TypeAlias = MaskTree | Callable[[Params], MaskTree] | str


@like_optax
class MaskedState(NamedTuple):
    """The state of a masked transformation, for the selected leaves."""

    inner_state: OptState


class View(NamedTuple):
    """Which leaves of a tree the masks select."""

    on: list[bool]  # for each leaf, whether it is selected
    hide: Callable[[Params], Params]  # replaces the other leaves by `MaskedNode`s


class Mask:
    """Booleans, a function of the params or updates that makes them, or a pattern."""

    def __init__(
        self, name: str, mask: MaskOrFn, extra_too: bool = False, argument: str = "mask"
    ):
        """Store the mask. A malformed pattern is an error here.

        Args:
            name: name used in error messages.
            mask: as for `masked`.
            extra_too: whether to mask extra arguments that are trees like the updates.
            argument: the name of the mask in error messages.
        """
        self.name = name
        self.extra_too = extra_too
        self._argument = argument
        self._made: Callable[[Params], MaskTree] = lambda params: mask
        if isinstance(mask, str):
            as_patterns(name, [mask])
            self._made = matching(mask)
        elif _is_function(mask):
            self._made = mask

    def tree(self, params: Params) -> MaskTree:
        """The booleans for these params."""
        return self._made(params)

    def view(self, leaves: Leaves) -> View:
        """The leaves that this mask selects."""
        tree = self.tree(leaves.tree)
        booleans, treedef = jax.tree.flatten(tree, is_leaf=_is_hole)
        try:
            parts = treedef.flatten_up_to(leaves.tree)
        except (KeyError, TypeError, ValueError):
            # The nodes have other types, or a hole is where the mask has a node.
            treedef, parts = leaves.treedef, leaves.arrays
            booleans = values_by_keys(leaves.tree, tree, _is_hole)
        if booleans is None:
            names = leaves.name, self._argument
            raise ValueError(
                f"{self.name}: {first_difference(leaves.tree, tree, names)}. Give the "
                f"{self._argument} the structure of the params, or one value for a "
                "whole subtree, or choose by path: `steepest.matching`, "
                "`steepest.route`."
            )

        on: list[bool] = []
        keep: list[bool] = []
        for boolean, part in zip(booleans, parts, strict=True):
            arrays = [part] if hasattr(part, "dtype") else Leaves(part).arrays
            empty = all(x is None for x in arrays)
            keep.append(empty or self._checked(boolean, leaves, len(on)))
            on += [keep[-1]] * len(arrays)

        def hide(other: Params) -> Params:
            parts = zip(keep, treedef.flatten_up_to(other), strict=True)
            return treedef.unflatten(
                [x if selected else MaskedNode() for selected, x in parts]
            )

        return View(on, hide)

    def _checked(self, boolean: object, leaves: Leaves, k: int) -> bool:
        if isinstance(boolean, bool):
            return boolean
        traced = isinstance(boolean, Tracer)
        # Numbers count as in Python, and in Optax: `x.ndim - 1` is a mask.
        if traced or _is_hole(boolean) or np.asarray(boolean).dtype.kind not in "biuf":
            raise TypeError(
                f"{self.name}: the mask has {boolean!r} at leaf {leaves.path(k)}, "
                "expected a boolean known before tracing. Make masks of `True` and "
                "`False`, outside `jit` or from shapes and paths alone."
            )
        return bool(boolean)


def view_through(masks: Sequence[Mask], leaves: Leaves) -> View:
    """The leaves that all masks select. Each mask sees what the last one selected."""
    view = View([True] * len(leaves.arrays), lambda tree: tree)
    for mask in masks:
        inner = mask.view(Leaves(view.hide(leaves.tree), leaves.name))
        rest = iter(inner.on)
        on = [was and next(rest) for was in view.on]
        view = View(on, lambda tree, f=inner.hide, g=view.hide: f(g(tree)))
    return view


def _is_hole(x: object) -> bool:
    return x is None or isinstance(x, MaskedNode)


def _is_function(mask: MaskOrFn) -> TypeGuard[Callable[[Params], MaskTree]]:
    """Whether to call the mask. A module whose leaves are booleans is a tree."""
    leaves = jax.tree.leaves(mask)
    is_tree = bool(leaves) and all(isinstance(x, bool | np.bool_) for x in leaves)
    return callable(mask) and not is_tree
