"""Masks: which leaves a transformation may touch."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import jax
import numpy as np
from jax.core import Tracer

from ..core import OptState, Params
from ..tree import first_difference
from ._leaves import Leaves, MaskedNode

MaskTree: TypeAlias = Any  # booleans: like the params, or one for a whole subtree
MaskOrFn: TypeAlias = MaskTree | Callable[[Params], MaskTree]


class MaskedState(NamedTuple):
    """The state of a masked transformation, which saw only some of the leaves."""

    inner_state: OptState


class View(NamedTuple):
    """What masks leave over of a tree."""

    on: list[bool]  # for each leaf, whether it is seen
    hide: Callable[[Params], Params]  # a tree -> with `MaskedNode`s for what is not


class Mask(NamedTuple):
    """A tree of booleans, or a function that makes one of the params or updates."""

    who: str  # who speaks in an error
    mask: MaskOrFn
    extra_too: bool = False  # whether extra arguments like the updates are masked too

    def view(self, leaves: Leaves) -> View:
        """What this mask leaves over."""
        tree = self.mask(leaves.tree) if _is_function(self.mask) else self.mask
        found, treedef = jax.tree.flatten(tree, is_leaf=_is_hole)
        try:
            parts = treedef.flatten_up_to(leaves.tree)
        except (KeyError, TypeError, ValueError):
            difference = first_difference(leaves.tree, tree, (leaves.name, "mask"))
            raise ValueError(
                f"{self.who}: {difference}. Give the mask the structure of the params, "
                "or one boolean for a whole subtree."
            ) from None

        on: list[bool] = []
        keep: list[bool] = []
        for boolean, part in zip(found, parts, strict=True):
            arrays = Leaves(part).arrays
            empty = all(x is None for x in arrays)
            keep.append(empty or self._checked(boolean, leaves, len(on)))
            on += [keep[-1]] * len(arrays)

        def hide(other: Params) -> Params:
            parts = zip(keep, treedef.flatten_up_to(other), strict=True)
            return treedef.unflatten([x if seen else MaskedNode() for seen, x in parts])

        return View(on, hide)

    def _checked(self, boolean: Any, leaves: Leaves, k: int) -> bool:
        traced = isinstance(boolean, Tracer)
        if traced or _is_hole(boolean) or np.asarray(boolean).dtype != bool:
            raise TypeError(
                f"{self.who}: the mask has {boolean!r} at leaf {leaves.path(k)}, and a "
                "boolean known before tracing is wanted. Make masks of `True` and "
                "`False`, outside `jit` or from shapes and paths alone."
            )
        return bool(boolean)


def view_through(masks: Sequence[Mask], leaves: Leaves) -> View:
    """What several masks leave over, each seeing what the last one left."""
    view = View([True] * len(leaves.arrays), lambda tree: tree)
    for mask in masks:
        seen = mask.view(Leaves(view.hide(leaves.tree), leaves.name))
        rest = iter(seen.on)
        on = [was and next(rest) for was in view.on]
        view = View(on, lambda tree, f=seen.hide, g=view.hide: f(g(tree)))
    return view


def _is_hole(x: Any) -> bool:
    return x is None or isinstance(x, MaskedNode)


def _is_function(mask: Any) -> bool:
    """Whether to call the mask: a module whose leaves are booleans is a tree."""
    leaves = jax.tree.leaves(mask)
    is_tree = bool(leaves) and all(isinstance(x, bool | np.bool_) for x in leaves)
    return callable(mask) and not is_tree
