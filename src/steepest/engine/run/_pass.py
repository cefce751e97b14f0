"""One pass over the leaves: each leaf is read once, and all rules are applied to it."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import PyTree

from ...core import OptState, Real, Rule
from ...numerics import by_split, fits, is_in_few_bits, on_gpu, sum_over
from ..leaves import alike, batches, Leaf, Leaves, View
from ._formula import (
    Job,
    joined,
    Landed,
    measuring,
    Numbers,
    Part,
    part_of,
    Row,
    summed,
    Way,
)
from ._memory import Memory
from ._per_step import begin_step, end_step, set_aside, Step
from ._stacks import run_stacks

T = TypeVar("T")


class Pass:
    """Rules that run together.

    Only the first may have a measure, since it gets the leaves unchanged. Only the last
    may have a matrix formula.
    """

    def __init__(self, rules: Sequence[Rule]):
        self.rules = tuple(rules)

    def run(
        self,
        leaves: Leaves,
        params: Sequence[PyTree],
        dtypes: Sequence[np.dtype | None],
        states: Sequence[OptState],
        views: Sequence[View],
        extra: Mapping[str, object],
        lands: bool = False,
    ) -> tuple[list[Leaf | Landed | None], list[OptState]]:
        """The leaves and the states after this pass.

        Args:
            leaves: the leaves before this pass.
            params: the param of each leaf, or `None`; anything where a leaf is `None`.
            dtypes: the dtype of each result; `None` to leave it in float32 or wider.
            states: the state of each rule.
            views: for each rule, the selected leaves.
            extra: the extra arguments of `update`.
            lands: whether a leaf may be `Landed`. Only in the last pass of a step.
        """
        memory = Memory(self.rules, states, views, leaves)
        updates = list(leaves.arrays)
        last = self.rules[-1]
        matrices = views[-1].on if last.matrix is not None else None
        # Input of a matrix formula stays in float32 until the formula has run.
        out = dtypes if matrices is None else _where_not(matrices, dtypes)
        selected = list(zip(*(view.on for view in views), strict=True))
        for k, (g, on) in enumerate(zip(updates, selected, strict=True)):
            if g is not None and any(on):
                memory.check(leaves, k, on)
        if memory.teams and last.formula_is_stacked:
            # Then it runs where the matrices are computed.
            for k in (k for team in memory.teams for k in team):
                selected[k] = (*selected[k][:-1], False)
        jobs = list(zip(updates, params, memory.rows, strict=True))
        kinds: list[Any] = [None] * len(jobs)  # of leaves that share a call
        for k, (job, on, dtype) in enumerate(zip(jobs, selected, out, strict=True)):
            if job[0] is not None and any(on):
                # What goes on to a matrix formula has no dtype yet.
                way = self._way(on, job, lands and dtype is not None)
                kinds[k] = on, dtype, way, alike(job[0])

        # Under `jit`, Python numbers are constants of the program, as in Optax.
        eager = not any(isinstance(x, Tracer) for x in updates)
        pairs = zip(self.rules, states, strict=True)
        steps = [begin_step(rule, state, extra) for rule, state in pairs]
        total = self._total(jobs, views[0], steps[0], eager)
        steps = [end_step(step, total) for step in steps]

        formulas, numbers = _formulas(steps, eager)
        for batch in batches(kinds):
            on, dtype, way, _ = kinds[batch[0]]
            formula = joined(formulas, on, dtype, way)
            results = formula([jobs[k] for k in batch], numbers)
            for k, (u, row) in zip(batch, results, strict=True):
                updates[k], memory.rows[k] = u, row
        if matrices is not None:
            run_stacks(steps[-1], updates, memory, dtypes, matrices, eager)
        shared = [step.shared for step in steps]
        if _has_no_turn(last, leaves.arrays, memory, views[-1]):
            shared[-1] = steps[-1].begun
        return updates, memory.states(shared)

    def _way(self, on: Sequence[bool], job: Job, lands: bool) -> Way:
        """How to compute the formulas of a leaf.

        Args:
            on: for each rule, whether it is applied to the leaf.
            job: the leaf.
            lands: whether it may be `Landed`.
        """
        g, p, row = job
        rules = [rule for rule, applied in zip(self.rules, on, strict=True) if applied]
        if not on_gpu() or not is_in_few_bits(row):
            return "plain"
        if any(rule.kind == "whole" for rule in rules) or not fits(row, (g, p)):
            return "twice"
        return "landing" if lands and p is not None else "kernel"

    def _total(
        self,
        jobs: Sequence[tuple[Leaf | None, PyTree, Row]],
        view: View,
        step: Step,
        eager: bool,
    ) -> PyTree:
        """The sum of the first rule's measure over its selected leaves."""
        rule = step.rule
        if rule.measure is None:
            return None
        part, numbers = part_of(
            rule, rule.measure.function, step.numbers, operands=eager
        )
        measure, flat = measuring(part), tuple(numbers)
        pairs = zip(jobs, view.on, strict=True)
        mine = [
            (g, p, row[: len(rule.memory)])
            for (g, p, row), on in pairs
            if on and g is not None
        ] or [_no_leaf(step)]
        totals = []
        for where, places in by_split(rule.measure.axes, mine).items():
            group = [mine[k] for k in places]
            rows = batches([alike(g) for g, *_ in group])
            measurements = [measure([group[k] for k in row], flat) for row in rows]
            totals.append(sum_over(where, summed(measurements)))
        return totals[0] if len(totals) == 1 else summed(totals)


def _has_no_turn(
    rule: Rule, arrays: Sequence[Leaf | None], memory: Memory, view: View
) -> bool:
    """Whether no matrix of a rule with turns has a gradient in this step.

    Then the rule does not count the step: it might be so in every second step, and the
    turn of a matrix always in these.
    """
    if rule.matrix is None or rule.matrix.every is None:
        return False
    mine = [k for k, on in enumerate(view.on) if on]
    return all(arrays[k] is None for k in mine) and any(map(memory.has, mine))


def _where_not(hidden: Sequence[bool], xs: Sequence[T]) -> list[T | None]:
    """`xs`, with `None` in place of the hidden ones."""
    return [None if out else x for out, x in zip(hidden, xs, strict=True)]


def _formulas(steps: Sequence[Step], eager: bool) -> tuple[tuple[Part, ...], Numbers]:
    """The formulas of these rules, and the arguments of all, one after the other."""
    parts: list[Part] = []
    flat: list[Real] = []
    for step in steps:
        part, mine = part_of(step.rule, step.rule.formula, step.numbers, operands=eager)
        parts.append(part)
        flat += mine
    return tuple(parts), set_aside(flat, steps[0].before.values())


def _no_leaf(step: Step) -> Job:
    """A leaf without elements, to measure in an empty tree."""
    p = jnp.zeros((0,))
    return p, p, tuple(step.rule.begin(p).values())
