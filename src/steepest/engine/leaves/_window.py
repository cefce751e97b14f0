"""What a masked transformation is called with, and how its results are put back.

Some extra arguments are functions of the params. A masked transformation has only the
selected params, so it gets a function of those: the other params are filled in with
their current values before the user's function is called.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import wraps

from jaxtyping import PyTree

from ...core import Params, Updates
from ._leaves import Leaves
from ._masks import View

# The extra arguments that are functions of the params, and whether they return a tree
# like the updates. The others return a number.
FUNCTIONS_OF_PARAMS = {"value_fn": False, "obj_fn": False, "grad_fn": True}
# The extra arguments that are trees like the updates.
LIKE_UPDATES = ("grad",)

_ADVICE = "Pass the params the updates are for."


class Window:
    """The selected part of the updates."""

    def __init__(self, name: str, view: View, updates: Updates):
        """Hide the leaves that are not selected.

        Args:
            name: name used in error messages.
            view: the leaves that the masks select.
            updates: the whole tree.
        """
        self._name = name
        self._view = view
        self._whole = Leaves(updates)
        self._selected = Leaves(view.hide(updates))

    @property
    def updates(self) -> Updates:
        """The selected updates."""
        return self._selected.tree

    def params(self, params: Params | None) -> Params | None:
        """The selected params."""
        if params is None:
            return None
        self._whole.match(self._name, params, "params", _ADVICE, deep=True)
        return self._view.hide(params)

    def extra(
        self, extra: Mapping[str, object], params: Params | None, *, all_trees: bool
    ) -> dict[str, object]:
        """The extra arguments, for the selected leaves.

        Args:
            extra: the extra arguments of `update`.
            params: the whole tree.
            all_trees: whether to mask every tree like the updates, not only `grad`.
        """
        masked = dict(extra)
        for name, x in extra.items():
            known = name in FUNCTIONS_OF_PARAMS and params is not None
            if known and callable(x):
                masked[name] = self._of_selected(x, params, FUNCTIONS_OF_PARAMS[name])
            elif (all_trees or name in LIKE_UPDATES) and self._is_alike(x):
                masked[name] = self._view.hide(x)
        return masked

    def back(self, updates: Updates) -> Updates:
        """`updates` for the selected leaves, and the original ones for the others."""
        advice = (
            "Under a mask, a transformation must keep the structure of the updates."
        )
        return self._filled(updates, self._whole.arrays, "inner updates", advice)

    def _of_selected(
        self, f: Callable[..., PyTree], params: Params, returns_tree: bool
    ) -> Callable[..., PyTree]:
        """`f` as a function of the selected params."""
        others = self._whole.treedef.flatten_up_to(params)

        @wraps(f)
        def of_selected(selected: Params, *args: object, **kwargs: object) -> PyTree:
            params = self._filled(selected, others, "params", _ADVICE)
            result = f(params, *args, **kwargs)
            return self._view.hide(result) if returns_tree else result

        return of_selected

    def _filled(
        self, selected: PyTree, others: Sequence[PyTree], tree_name: str, advice: str
    ) -> Params:
        """The selected leaves, with `others` in place of the hidden ones."""
        deep = tree_name == "params"
        rest = iter(
            self._selected.match(self._name, selected, tree_name, advice, deep=deep)
        )
        pairs = zip(self._view.on, others, strict=True)
        return self._whole.like([next(rest) if on else x for on, x in pairs])

    def _is_alike(self, x: PyTree) -> bool:
        return Leaves(x).treedef == self._whole.treedef
