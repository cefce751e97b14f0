"""Masks: which leaves a transformation may touch."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import jax
import numpy as np
from jax.core import Tracer

from ...core import like_optax, OptState, Params
from ...tree import as_patterns, first_difference, matching, said_of_leaves
from ._leaves import Leaves, MaskedNode

MaskTree: TypeAlias = Any  # booleans: like the params, or one for a whole subtree
# A tree, a function that makes one, or a regular expression on the paths of the leaves.
MaskOrFn: TypeAlias = MaskTree | Callable[[Params], MaskTree] | str


@like_optax
class MaskedState(NamedTuple):
    """The state of a masked transformation, which saw only some of the leaves."""

    inner_state: OptState


class View(NamedTuple):
    """What masks leave over of a tree."""

    on: list[bool]  # for each leaf, whether it is seen
    hide: Callable[[Params], Params]  # a tree -> with `MaskedNode`s for what is not


class Mask:
    """Booleans, a function that makes them of the params or updates, or a pattern."""

    def __init__(
        self, who: str, mask: MaskOrFn, extra_too: bool = False, name: str = "mask"
    ):
        """Say which leaves are seen.

        Args:
            who: who speaks in an error.
            mask: as for `masked`. A malformed pattern is refused here.
            extra_too: whether extra arguments like the updates are masked too.
            name: what the mask is called in an error.
        """
        self.who = who
        self.extra_too = extra_too
        self._name = name
        self._made: Callable[[Params], MaskTree] = lambda params: mask
        if isinstance(mask, str):
            as_patterns(who, [mask])
            self._made = matching(mask)
        elif _is_function(mask):
            self._made = mask

    def tree(self, params: Params) -> MaskTree:
        """The booleans for these params."""
        return self._made(params)

    def view(self, leaves: Leaves) -> View:
        """What this mask leaves over."""
        tree = self.tree(leaves.tree)
        found, treedef = jax.tree.flatten(tree, is_leaf=_is_hole)
        try:
            parts = treedef.flatten_up_to(leaves.tree)
        except (KeyError, TypeError, ValueError):
            # Nodes of another kind, or a hole where the mask has a node.
            treedef, parts = leaves.treedef, leaves.arrays
            found = said_of_leaves(leaves.tree, tree, _is_hole)
        if found is None:
            names = leaves.name, self._name
            raise ValueError(
                f"{self.who}: {first_difference(leaves.tree, tree, names)}. Give the "
                f"{self._name} the structure of the params, or one value for a whole "
                "subtree, or choose by path: `steepest.matching`, `steepest.route`."
            )

        on: list[bool] = []
        keep: list[bool] = []
        for boolean, part in zip(found, parts, strict=True):
            arrays = [part] if hasattr(part, "dtype") else Leaves(part).arrays
            empty = all(x is None for x in arrays)
            keep.append(empty or self._checked(boolean, leaves, len(on)))
            on += [keep[-1]] * len(arrays)

        def hide(other: Params) -> Params:
            parts = zip(keep, treedef.flatten_up_to(other), strict=True)
            return treedef.unflatten([x if seen else MaskedNode() for seen, x in parts])

        return View(on, hide)

    def _checked(self, boolean: Any, leaves: Leaves, k: int) -> bool:
        if isinstance(boolean, bool):
            return boolean
        traced = isinstance(boolean, Tracer)
        if traced or _is_hole(boolean) or np.asarray(boolean).dtype != bool:
            raise TypeError(
                f"{self.who}: the mask has {boolean!r} at leaf {leaves.path(k)}, "
                "expected a boolean known before tracing. Make masks of `True` and "
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
