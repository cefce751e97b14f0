"""What a transformation sees under a mask, and what becomes of the rest.

Some extra arguments speak of the params. Under a mask there are fewer of those, so a
function of the params becomes a function of the ones that are seen: the holes are
filled with the params of today before it is called.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any

from ...core import Params, Updates
from ._leaves import Leaves
from ._masks import View

# The extra arguments that are functions of the params, and whether what they return
# is a tree like the updates; otherwise it is a number.
FUNCTIONS_OF_PARAMS = {"value_fn": False, "obj_fn": False, "grad_fn": True}
# Those that are trees like the updates.
LIKE_UPDATES = ("grad",)

_ADVICE = "Pass the params the updates are for."


class Window:
    """The updates, as masks show them."""

    def __init__(self, name: str, view: View, updates: Updates):
        """Look at the updates.

        Args:
            name: name used in error messages.
            view: what the masks leave over.
            updates: the whole tree.
        """
        self._who = name
        self._view = view
        self._whole = Leaves(updates)
        self._seen = Leaves(view.hide(updates))

    @property
    def updates(self) -> Updates:
        """What is seen of the updates."""
        return self._seen.tree

    def params(self, params: Params | None) -> Params | None:
        """What is seen of the params."""
        if params is None:
            return None
        self._whole.match(self._who, params, "params", _ADVICE, deep=True)
        return self._view.hide(params)

    def extra(
        self, extra: Mapping[str, Any], params: Params | None, *, all_trees: bool
    ) -> dict[str, Any]:
        """The extra arguments, for what is seen.

        Args:
            extra: those of `update`.
            params: the whole tree.
            all_trees: whether everything like the updates is masked, known or not.
        """
        found = dict(extra)
        for name, x in extra.items():
            known = name in FUNCTIONS_OF_PARAMS and callable(x)
            if known and params is not None:
                found[name] = self._of_seen(x, params, FUNCTIONS_OF_PARAMS[name])
            elif (all_trees or name in LIKE_UPDATES) and self._is_alike(x):
                found[name] = self._view.hide(x)
        return found

    def back(self, found: Updates) -> Updates:
        """These updates where they were seen, and elsewhere those that came in."""
        advice = (
            "Under a mask, a transformation must keep the structure of the updates."
        )
        return self._filled(found, self._whole.arrays, "inner updates", advice)

    def _of_seen(
        self, f: Callable[..., Any], params: Params, returns_tree: bool
    ) -> Callable[..., Any]:
        """`f` as a function of the params that are seen."""
        others = self._whole.treedef.flatten_up_to(params)

        @wraps(f)
        def of_seen(seen: Params, *args: Any, **kwargs: Any) -> Any:
            found = f(self._filled(seen, others, "params", _ADVICE), *args, **kwargs)
            return self._view.hide(found) if returns_tree else found

        return of_seen

    def _filled(
        self, seen: Any, others: Sequence[Any], name: str, advice: str
    ) -> Params:
        """What is seen, with the others where the holes are."""
        deep = name == "params"
        rest = iter(self._seen.match(self._who, seen, name, advice, deep=deep))
        pairs = zip(self._view.on, others, strict=True)
        return self._whole.like([next(rest) if on else x for on, x in pairs])

    def _is_alike(self, x: Any) -> bool:
        return Leaves(x).treedef == self._whole.treedef
