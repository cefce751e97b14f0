"""What the rules of a sweep keep of each leaf, out of their states and back."""

from collections.abc import Sequence
from typing import Any

from ..core import OptState, Rule
from ._formula import Row
from ._leaves import Leaves
from ._masks import View


class Memory:
    """A table with a row for each leaf and a column for each thing kept of it.

    Where a rule does not see a leaf, its columns hold `None`.
    """

    def __init__(
        self,
        rules: Sequence[Rule],
        states: Sequence[OptState],
        views: Sequence[View],
        leaves: Leaves,
    ):
        self._rules = rules
        self._views = views
        self._seen = [_seen(view, leaves) for view in views]
        columns = []
        for rule, state, view, seen in zip(
            rules, states, views, self._seen, strict=True
        ):
            for found in _columns(rule, state, seen):
                rest = iter(found)
                columns.append([next(rest) if on else None for on in view.on])
        size = len(leaves.arrays)
        self.rows: list[Row] = list(zip(*columns, strict=True)) or [()] * size

    def states(self, shared: Sequence[dict[str, Any]]) -> list[OptState]:
        """The states with these rows, and with what is kept for the whole tree."""
        column = 0
        states = []
        for rule, view, seen, tree in zip(
            self._rules, self._views, self._seen, shared, strict=True
        ):
            memory = {}
            for name in rule.remember:
                pairs = zip(self.rows, view.on, strict=True)
                memory[name] = seen.like([row[column] for row, on in pairs if on])
                column += 1
            states.append(rule.State(**tree, **memory))
        return states

    def check(self, leaves: Leaves, k: int, on: Sequence[bool]) -> None:
        """That what is kept of leaf `k` has its shape, and is there at all."""
        column = 0
        for rule, seen in zip(self._rules, on, strict=True):
            for name in rule.remember:
                kept, shape = self.rows[k][column], leaves.arrays[k].shape
                column += 1
                if not seen:
                    continue
                if kept is None:
                    found = "nothing"
                elif rule.kind == "elementwise" and kept.shape != shape:
                    found = f"shape {kept.shape}"
                else:
                    continue
                raise ValueError(
                    f"{rule.name}: leaf {leaves.path(k)} has shape {shape} in the "
                    f"updates and {found} in the state's `{name}`. "
                    "Pass a state made by `tx.init` of the params the updates are for."
                )


def _seen(view: View, leaves: Leaves) -> Leaves:
    if all(view.on):
        return leaves
    return Leaves(view.hide(leaves.tree), leaves.name)


def _columns(rule: Rule, state: OptState, seen: Leaves) -> list[list[Any]]:
    """For each thing `rule` keeps, its leaves."""
    advice = "Make the state with `tx.init` of the params the updates are for."
    if not all(hasattr(state, name) for name in (*rule.shared, *rule.remember)):
        raise TypeError(
            f"{rule.name}: the state is a {type(state).__name__}, and a "
            f"{rule.State.__name__} is wanted. {advice}"
        )
    deep = rule.kind != "elementwise"
    return [
        seen.match(rule.name, getattr(state, x), f"state's `{x}`", advice, deep=deep)
        for x in rule.remember
    ]
