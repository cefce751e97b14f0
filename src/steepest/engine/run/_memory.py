"""The memory of all rules of a pass: read from their states, and written back."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TypeVar

import jax
import numpy as np
from jaxtyping import PyTree

from ... import check
from ...core import OptState, Rule, Static
from ...numerics import is_coded
from ..leaves import Leaves, View
from ._formula import Row

T = TypeVar("T")


class Memory:
    """A table with a row for each leaf and a column for each memory field of a rule.

    If a mask hides a leaf from a rule, the rule's columns hold `None` for it.
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
        # The numbers that the initial memory depends on, computed once for all leaves.
        self._numbers = {
            (place, name): _numbers(rule, begin)
            for place, rule in enumerate(rules)
            for name, begin in rule.memory.items()
            if not rule.is_elementwise
        }
        self._selected = [_selected_leaves(view, leaves) for view in views]
        columns = []
        for rule, state, view, selected in zip(
            rules, states, views, self._selected, strict=True
        ):
            for column in _columns(rule, state, selected):
                rest = iter(column)
                columns.append([next(rest) if on else None for on in view.on])
        size = len(leaves.arrays)
        self.rows: list[Row] = list(zip(*columns, strict=True)) or [()] * size

    def states(self, shared: Sequence[dict[str, PyTree]]) -> list[OptState]:
        """The new states, with these rows and the fields kept for the whole tree."""
        column = 0
        states = []
        for rule, view, selected, tree in zip(
            self._rules, self._views, self._selected, shared, strict=True
        ):
            memory = {}
            for name in rule.memory:
                pairs = zip(self.rows, view.on, strict=True)
                memory[name] = selected.like([row[column] for row, on in pairs if on])
                column += 1
            states.append(rule.State(**tree, **memory))
        return states

    def check(self, leaves: Leaves, k: int, on: Sequence[bool]) -> None:
        """Check that the rules accept leaf `k`, and that its memory has its shape."""
        column = 0
        for place, (rule, selected) in enumerate(zip(self._rules, on, strict=True)):
            if selected and rule.check_leaf is not None:
                wrong = rule.check_leaf(leaves.arrays[k])
                if wrong is not None:
                    raise ValueError(f"{rule.name}: leaf {leaves.path(k)} {wrong}")
            for name, begin in rule.memory.items():
                kept, g = self.rows[k][column], leaves.arrays[k]
                column += 1
                if not selected:
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
                    f"{rule.name}: leaf {leaves.path(k)} has shape {g.shape} in the "
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
            f"{rule.name}: the state is a {type(state).__name__}, expected a "
            f"{rule.State.__name__}. {advice}"
        )
    deep = not rule.is_elementwise
    return [
        selected.match(
            rule.name, getattr(state, x), f"state's `{x}`", advice, deep=deep
        )
        for x in rule.memory
    ]
