"""One pass over the leaves: every leaf is read once and goes through all the rules."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.core import Tracer

from ..core import OptState, Recent, Rule, Step
from ..numerics import by_split, sum_over
from ._batches import alike, batches
from ._formula import Formula, Job, joined, measuring, Numbers, result, summed
from ._leaves import Leaves
from ._masks import View
from ._memory import Memory
from ._stacks import stacking, stacks

_KINDS = 64  # formulas kept of one sweep: combinations of masks, dtypes and numbers


class Sweep:
    """Rules that run together.

    Only the first may measure: it sees what comes in. Only the last may be heavy.
    """

    def __init__(self, rules: Sequence[Rule]):
        self.rules = tuple(rules)
        self._formulas: Recent[Formula] = Recent(_KINDS)
        self._measures: Recent[Any] = Recent(_KINDS)
        self._heavy: Recent[Any] = Recent(_KINDS)

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
        updates = list(leaves.arrays)
        seen = zip(*(view.on for view in views), strict=True)
        heavy = views[-1].on if self.rules[-1].heavy is not None else None
        # What has a heavy formula before it stays wide.
        out = dtypes if heavy is None else _where_not(heavy, dtypes)
        kinds: list[Any] = [
            None if g is None or not any(on) else (on, dtype, alike(g))
            for g, on, dtype in zip(updates, seen, out, strict=True)
        ]
        for k, kind in enumerate(kinds):
            if kind is not None:
                memory.check(leaves, k, kind[0])

        jobs = list(zip(updates, params, memory.rows, strict=True))
        ahead = self._ahead(states[0], extra)
        total = self._total(jobs, views[0], ahead)
        numbers, shared = self._prepare(states, Step(total, extra, ahead))
        names = tuple(tuple(mine) for mine in numbers)
        flat = _set_aside((x for mine in numbers for x in mine.values()), ahead)
        for batch in batches(kinds):
            on, dtype, _ = kinds[batch[0]]
            found = self._formula(names, on, dtype)([jobs[k] for k in batch], flat)
            for k, (u, row) in zip(batch, found, strict=True):
                updates[k], memory.rows[k] = u, row
        if heavy is not None:
            mine = flat[len(flat) - len(names[-1]) :]
            rest = _where_not([not on for on in heavy], updates)
            for row in stacks(rest, dtypes):
                through = self._stacked(names[-1], dtypes[row[0]])
                found = through([updates[k] for k in row], mine)
                for k, u in zip(row, found, strict=True):
                    updates[k] = u
        return updates, memory.states(shared)

    def _ahead(self, state: OptState, extra: Mapping[str, Any]) -> dict[str, Any]:
        """What the first rule knows before it measures, by name."""
        rule = self.rules[0]
        if rule.ahead is None:
            return {}
        numbers = rule.ahead(Step(None, extra), *_shared(rule, state).values())
        return dict(zip(numbers, _set_aside(numbers.values()), strict=True))

    def _total(
        self, jobs: Sequence[Job], view: View, numbers: Mapping[str, Any]
    ) -> Any:
        """The sum, over the leaves the first rule sees, of what it measures."""
        rule = self.rules[0]
        if rule.measure is None:
            return None
        flat = tuple(numbers.values())
        measure = self._measured(rule.measure, tuple(numbers))
        pairs = zip(jobs, view.on, strict=True)
        mine = [
            (g, p, row[: len(rule.remember)])
            for (g, p, row), on in pairs
            if on and g is not None
        ] or [_no_leaf(rule)]
        totals = []
        for where, places in by_split(rule.axes, mine).items():
            group = [mine[k] for k in places]
            rows = batches([alike(g) for g, *_ in group])
            found = [measure([group[k] for k in row], flat) for row in rows]
            totals.append(sum_over(where, summed(found)))
        return totals[0] if len(totals) == 1 else summed(totals)

    def _prepare(
        self, states: Sequence[OptState], step: Step
    ) -> tuple[list[Mapping[str, Any]], list[dict[str, Any]]]:
        """Each rule's numbers, and what it keeps for the tree."""
        numbers: list[Mapping[str, Any]] = []
        kept = []
        for rule, state in zip(self.rules, states, strict=True):
            shared = _shared(rule, state)
            found: Mapping[str, Any] = {}
            if rule.prepare is not None:
                found, *new = result(rule.prepare(step, *shared.values()))
                shared = dict(zip(rule.shared, new, strict=True))
            numbers.append(found)
            kept.append(shared)
        return numbers, kept

    def _measured(self, measure: Callable[..., Any], names: tuple[str, ...]) -> Any:
        """What the first rule measures, of some leaves."""
        return self._measures(names, lambda: measuring(measure, names))

    def _formula(self, names: Any, on: tuple[bool, ...], dtype: Any) -> Formula:
        """The joined formula of the rules that see a leaf."""
        key = names, on, dtype
        return self._formulas(key, lambda: joined(self.rules, *key))

    def _stacked(self, names: tuple[str, ...], dtype: Any) -> Any:
        """The heavy formula of the last rule, of matrices of one shape."""
        key = names, dtype
        return self._heavy(key, lambda: stacking(self.rules[-1], *key))


def _shared(rule: Rule, state: OptState) -> dict[str, Any]:
    """What `rule` keeps for the tree, by name, in the rule's order."""
    names = rule.shared
    return {name: jax.tree.map(jnp.asarray, getattr(state, name)) for name in names}


def _where_not(hidden: Sequence[bool], xs: Sequence[Any]) -> list[Any]:
    """`xs`, with `None` in the place of what is hidden."""
    return [None if out else x for out, x in zip(hidden, xs, strict=True)]


def _no_leaf(rule: Rule) -> Job:
    """A leaf without elements: what there is to measure in an empty tree."""
    p = jnp.zeros((0,))
    return p, p, tuple(begin(p) for begin in rule.remember.values())


def _set_aside(numbers: Iterable[Any], done: Mapping[str, Any] = {}) -> Numbers:
    """The same numbers, not to be computed again for every element of every leaf.

    Without the barrier XLA may draw `b ** t` into the loops that use it.

    Args:
        numbers: what is to be set aside.
        done: of these, those that already are.
    """
    flat, apart = list(numbers), {id(x) for x in done.values()}
    rest = [k for k, x in enumerate(flat) if id(x) not in apart]
    if any(isinstance(flat[k], Tracer) for k in rest):
        found = jax.lax.optimization_barrier(tuple(flat[k] for k in rest))
        for k, x in zip(rest, found, strict=True):
            flat[k] = x
    return tuple(flat)
