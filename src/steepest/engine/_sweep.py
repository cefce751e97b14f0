"""One pass over the leaves: every leaf is read once and goes through all the rules."""

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.core import Tracer

from ..core import OptState, Rule, Step
from ._batches import alike, batches
from ._formula import Formula, joined, measuring, Numbers, result, summed
from ._leaves import Leaves
from ._masks import View
from ._memory import Memory


class Sweep:
    """Rules that run together. Only the first may measure: it sees what comes in."""

    def __init__(self, rules: Sequence[Rule]):
        self.rules = tuple(rules)
        self._formulas: dict[Any, Formula] = {}
        measure = self.rules[0].measure
        self._measure = None if measure is None else measuring(measure)

    def run(
        self,
        leaves: Leaves,
        params: Sequence[Any],
        dtypes: Sequence[Any],
        states: Sequence[OptState],
        views: Sequence[View],
        extra: Mapping[str, Any],
    ) -> tuple[list[Any], list[OptState]]:
        """The leaves and the states after this pass.

        Args:
            leaves: what comes in.
            params: the param of each leaf, or `None`.
            dtypes: the dtype each leaf goes out in; `None` to leave it wide.
            states: the state of each rule.
            views: for each rule, the leaves it may touch.
            extra: the extra arguments of `update`.
        """
        memory = Memory(self.rules, states, views, leaves)
        numbers, shared = self._prepare(states, Step(self._total(leaves, views), extra))
        names = tuple(tuple(mine) for mine in numbers)
        flat = _set_aside(tuple(x for mine in numbers for x in mine.values()))

        updates = list(leaves.arrays)
        seen = zip(*(view.on for view in views), strict=True)
        kinds: list[Any] = [
            None if g is None or not any(on) else (on, dtype, alike(g))
            for g, on, dtype in zip(updates, seen, dtypes, strict=True)
        ]
        for k, kind in enumerate(kinds):
            if kind is not None:
                memory.check(leaves, k, kind[0])
        for batch in batches(kinds):
            on, dtype, _ = kinds[batch[0]]
            jobs = [(updates[k], params[k], memory.rows[k]) for k in batch]
            found = self._formula(names, on, dtype)(jobs, flat)
            for k, (u, row) in zip(batch, found, strict=True):
                updates[k], memory.rows[k] = u, row
        return updates, memory.states(shared)

    def _total(self, leaves: Leaves, views: Sequence[View]) -> Any:
        """The sum, over the leaves the first rule sees, of what it measures."""
        measure = self._measure
        if measure is None:
            return None
        pairs = zip(leaves.arrays, views[0].on, strict=True)
        kinds = [alike(g) if on and g is not None else None for g, on in pairs]
        found = [measure([leaves.arrays[k] for k in row]) for row in batches(kinds)]
        return summed(found or [measure([jnp.zeros((0,))])])

    def _prepare(
        self, states: Sequence[OptState], step: Step
    ) -> tuple[list[Mapping[str, Any]], list[dict[str, Any]]]:
        """Each rule's numbers, and what it keeps for the tree."""
        numbers: list[Mapping[str, Any]] = []
        kept = []
        for rule, state in zip(self.rules, states, strict=True):
            shared = {name: jnp.asarray(getattr(state, name)) for name in rule.shared}
            found: Mapping[str, Any] = {}
            if rule.prepare is not None:
                found, *new = result(rule.prepare(step, *shared.values()))
                shared = dict(zip(rule.shared, new, strict=True))
            numbers.append(found)
            kept.append(shared)
        return numbers, kept

    def _formula(self, names: Any, on: tuple[bool, ...], dtype: Any) -> Formula:
        """The joined formula of the rules that see a leaf."""
        key = names, on, dtype
        if key not in self._formulas:
            self._formulas[key] = joined(self.rules, names, on, dtype)
        return self._formulas[key]


def _set_aside(numbers: Numbers) -> Numbers:
    """The same numbers, not to be computed again for every element of every leaf.

    Without the barrier XLA may draw `b ** t` into the loops that use it.
    """
    if any(isinstance(x, Tracer) for x in numbers):
        return jax.lax.optimization_barrier(numbers)
    return numbers
