"""The memory of all rules of a pass: read from their states, and written back."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TypeVar

import jax
import numpy as np
from jaxtyping import PyTree

from ... import check
from ...core import OptState, Rule, Static
from ...numerics import is_coded
from ..leaves import Leaves, Stacked, StackLayout, View
from ._formula import Row

T = TypeVar("T")


class Memory:
    """A table with a row for each leaf and a column for each memory field of a rule.

    If a mask hides a leaf from a rule, the rule's columns hold `None` for it. So do
    columns of memory that is kept in stacks, for the leaves in them.
    """

    def __init__(
        self,
        rules: Sequence[Rule],
        states: Sequence[OptState],
        views: Sequence[View],
        leaves: Leaves,
    ):
        self.rules = rules
        self._views = views
        # The numbers that the initial memory depends on, computed once for all leaves.
        self._numbers = {
            (place, name): _numbers(rule, begin)
            for place, rule in enumerate(rules)
            for name, begin in rule.memory.items()
            if not rule.is_elementwise
        }
        self._selected = [_selected_leaves(view, leaves) for view in views]
        columns, stacks = [], {}
        for rule, state, view, selected in zip(
            rules, states, views, self._selected, strict=True
        ):
            if rule.matrix is not None:
                stacks = _stacks(rule, state, selected)
            for column in _columns(rule, state, selected):
                rest = iter(column)
                columns.append([next(rest) if on else None for on in view.on])
        size = len(leaves.arrays)
        # The stacks of the last rule by field. Only that can have a matrix formula.
        self.stacks: dict[str, Stacked] = stacks
        # For each stack, the numbers of its leaves.
        shown = [k for k in range(size) if views[-1].on[k]]
        groups = [x.layout.stacks for x in stacks.values()]  # all the same
        self.teams = [[shown[j] for j in stack] for stack in (groups or [()])[0]]
        self.in_stacks = {k for team in self.teams for k in team}
        self.rows: list[Row] = list(zip(*columns, strict=True)) or [()] * size

    def has(self, k: int) -> bool:
        """Whether there is memory for leaf `k`."""
        return k in self.in_stacks or bool(jax.tree.leaves(self.rows[k]))

    @property
    def layout(self) -> StackLayout:
        """The layout of the stacks, if there are any."""
        return next(iter(self.stacks.values())).layout

    def stack(self, s: int) -> dict[str, PyTree]:
        """The memory in stack `s`, by the names in signatures."""
        pairs = ((name, self.stacks.get(k)) for name, k in self._fields.items())
        return {name: x.stacks[s] for name, x in pairs if x is not None}

    def put(self, s: int, new: Mapping[str, PyTree]) -> None:
        """Replace the memory in stack `s`."""
        for name, x in new.items():
            old = self.stacks[self._fields[name]]
            stacks = *old.stacks[:s], x, *old.stacks[s + 1 :]
            self.stacks[self._fields[name]] = replace(old, stacks=stacks)

    @property
    def _fields(self) -> dict[str, str]:
        """The fields of the last rule, by the names in signatures."""
        rule = self.rules[-1]
        return dict(zip(rule.memory_names, rule.memory, strict=True))

    def states(self, shared: Sequence[dict[str, PyTree]]) -> list[OptState]:
        """The new states, with these rows and the fields kept for the whole tree."""
        column = 0
        states = []
        for rule, view, selected, tree in zip(
            self.rules, self._views, self._selected, shared, strict=True
        ):
            memory = {}
            for name in rule.memory:
                pairs = zip(self.rows, view.on, strict=True)
                values = [row[column] for row, on in pairs if on]
                column += 1
                stacked = self.stacks.get(name) if rule is self.rules[-1] else None
                if stacked is None:
                    memory[name] = selected.like(values)
                else:
                    whole = tuple(values[k] for k in stacked.layout.whole)
                    memory[name] = replace(stacked, whole=whole)
            states.append(rule.State(**tree, **memory))
        return states

    def check(self, leaves: Leaves, k: int, on: Sequence[bool]) -> None:
        """Check that the rules accept leaf `k`, and that its memory has its shape."""
        column, last = 0, len(self.rules) - 1
        for place, (rule, selected) in enumerate(zip(self.rules, on, strict=True)):
            if selected and rule.check_leaf is not None:
                wrong = rule.check_leaf(leaves.arrays[k])
                if wrong is not None:
                    raise ValueError(f"{rule.title}: leaf {leaves.path(k)} {wrong}")
            for name, begin in rule.memory.items():
                kept, g = self.rows[k][column], leaves.arrays[k]
                column += 1
                stacked = place == last and name in self.stacks
                if not selected or (stacked and k in self.in_stacks):
                    continue
                wanted = [g.shape]
                if not rule.is_elementwise:
                    numbers = self._numbers[place, name]
                    wanted = _shapes(begin, numbers, g.shape, g.dtype)
                arrays = jax.tree.leaves(kept, is_leaf=is_coded)
                shapes = [x.shape if is_coded(x) else np.shape(x) for x in arrays]
                if kept is not None and shapes == wanted:
                    continue
                has = "shape " + " and ".join(map(str, shapes)) if shapes else "nothing"
                raise ValueError(
                    f"{rule.title}: leaf {leaves.path(k)} has shape {g.shape} in the "
                    f"updates and {has} in the state's `{name}`. "
                    "Pass a state made by `tx.init` of the params the updates are for."
                )


@lru_cache(maxsize=1024)
def _shapes(
    begin: Callable[..., PyTree],
    numbers: Static,
    shape: tuple[int, ...],
    dtype: np.dtype,
) -> list[tuple[int, ...]]:
    """The shapes of the initial memory of a leaf with this shape and dtype."""
    p, values = jax.ShapeDtypeStruct(shape, dtype), dict(numbers.values)
    arrays = {k: x for k, x in values.items() if isinstance(x, jax.ShapeDtypeStruct)}
    fixed = {k: x for k, x in values.items() if k not in arrays}
    first = lambda p, arrays: begin(p, **fixed, **arrays)
    return [x.shape for x in jax.tree.leaves(jax.eval_shape(first, p, arrays))]


def _numbers(rule: Rule, begin: Callable[..., PyTree]) -> Static:
    """The numbers in the signature of `begin`, by name."""
    return Static((k, _abstract(x)) for k, x in rule.asked_by(begin).items())


def _abstract(x: T) -> T | jax.ShapeDtypeStruct:
    """The shape of an array, or `x` itself. A cache must not hold tracers."""
    return jax.ShapeDtypeStruct(x.shape, x.dtype) if isinstance(x, jax.Array) else x


def _selected_leaves(view: View, leaves: Leaves) -> Leaves:
    if all(view.on):
        return leaves
    return Leaves(view.hide(leaves.tree), leaves.name)


def _columns(rule: Rule, state: OptState, selected: Leaves) -> list[list[PyTree]]:
    """For each memory field of `rule`, its leaves."""
    advice = "Make the state with `tx.init` of the params the updates are for."
    if not check.has_fields(state, (*rule.shared, *rule.memory)):
        raise TypeError(
            f"{rule.title}: the state is a {type(state).__name__}, expected a "
            f"{rule.State.__name__}. {advice}"
        )
    deep = not rule.is_elementwise

    def column(name: str) -> list[PyTree]:
        tree = getattr(state, name)
        if not isinstance(tree, Stacked):
            title = f"state's `{name}`"
            return selected.match(rule.title, tree, title, advice, deep=deep)
        values: list[PyTree] = [None] * len(tree.layout.shapes)
        for k, x in zip(tree.layout.whole, tree.whole, strict=True):
            values[k] = x
        return values

    return [column(name) for name in rule.memory]


def _stacks(rule: Rule, state: OptState, selected: Leaves) -> dict[str, Stacked]:
    """The memory of `rule` that is kept in stacks, by field."""
    fields = {name: getattr(state, name, None) for name in rule.memory}
    stacks = {name: x for name, x in fields.items() if isinstance(x, Stacked)}
    for name, x in stacks.items():
        pairs = zip(selected.arrays, x.layout.shapes, strict=False)
        fits = all(g is None or g.shape == shape for g, shape in pairs)
        if x.layout.treedef != selected.treedef or not fits:
            raise ValueError(
                f"{rule.title}: the state's `{name}` has stacks of matrices for other "
                "leaves than those of the updates. Pass a state made by `tx.init` of "
                "the params the updates are for."
            )
        if set(stacks) != set(rule.stacked):
            raise ValueError(
                f"{rule.title}: the state keeps {', '.join(stacks)} in stacks of "
                f"matrices, expected {', '.join(rule.stacked) or 'no stacks'}. Convert "
                "it: `steepest.restore_as(state, tx, params)`."
            )
    return stacks
