"""Matrices of equal shape run through a matrix formula together, as one stack.

A formula with twenty products compiles to twenty products for a stack of a hundred
matrices, and the stack keeps an accelerator busy, which one small matrix would not.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any

import jax
import numpy as np
from jaxtyping import Array, PyTree

from ...core import names_of, Real
from ...numerics import divided, inlined, reshaped, sharded_like, Team, team_of
from ..leaves import decoded, encoded_like, Leaf, restore
from ._every import run_every
from ._formula import COMPILED, Numbers, one_matrix, Part, part_of, Row
from ._grouping import folded_shape, memory_kind, Shape, stacks
from ._joined import Stack
from ._kept import kept_stacks
from ._memory import Memory
from ._per_step import Step
from ._teams import run_teams, shapes_in_stacks
from ._turns import Places

Dtypes = Mapping[int, np.dtype | None]  # of each result; `None` for float32 or wider


def run_stacks(
    step: Step,
    updates: list[Leaf | None],
    memory: Memory,
    dtypes: Sequence[np.dtype | None],
    on: Sequence[bool],
    eager: bool,
) -> None:
    """Apply the matrix formulas of the last rule of a pass, in place.

    Args:
        step: the last rule of the pass, with its numbers.
        updates: the leaves after its `formula`.
        memory: the memory of all rules of the pass.
        dtypes: the dtype of each result; `None` to leave it in float32 or wider.
        on: for each leaf, whether the rule's masks select it.
        eager: whether Python numbers that only multiply are arguments.
    """
    rule, matrix = step.rule, step.rule.matrix
    assert matrix is not None
    pairs = enumerate(zip(updates, on, strict=True))
    xs = {k: x for k, (x, selected) in pairs if selected and x is not None}
    missing = any(
        selected and x is None and memory.has(k)
        for k, (x, selected) in enumerate(zip(updates, on, strict=True))
    )
    team = None
    if matrix.reshard and xs:
        team = team_of(rule.title, matrix.reshard, next(iter(xs.values())))
    # The matrices of a rule without such memory are stacked only in a step.
    sharing = None if rule.stacked else team
    names = rule.memory_names
    start = len(memory.rows[0]) - len(names) if memory.rows else 0
    alone = [k for k in xs if k not in memory.in_stacks]
    stored = {k: dict(zip(names, memory.rows[k][start:], strict=True)) for k in alone}
    shapes = {k: folded_shape(rule, x.shape) for k, x in xs.items()}
    leaves = {k: xs[k] for k in alone}
    # On one device, a stack is a leaf of many matrices, in place of its first leaf.
    kept = {} if team is not None else kept_stacks(memory, xs)
    for k, stack in kept.items():
        leaves[k] = stack.joined(xs)
        shapes[k], stored[k] = stack.shape, stack.memory
    leaves = dict(sorted(leaves.items()))
    # Memory in few bits is decoded here, if a matrix formula uses it.
    rows = {
        k: {name: decoded(x) if name in matrix.arrays else x for name, x in row.items()}
        for k, row in stored.items()
    }

    def apply(f: Callable[..., object], xs: dict[int, Leaf], wanted: Dtypes) -> None:
        part, numbers = part_of(rule, f, step.numbers, operands=eager)
        _apply(part, numbers, xs, rows, shapes, wanted, sharing, kept)

    wide: Dtypes = dict.fromkeys(leaves)
    if kept and rule.formula_is_stacked:
        joined = {k: leaves[k] for k in kept}
        apply(rule.formula, joined, wide)
        leaves |= joined
    if matrix.before is not None:
        apply(matrix.before, leaves, wide)
    places: dict[tuple[int, int | None], Places] = {}
    if matrix.every is not None:
        # All matrices take turns, in whatever way their memory is kept.
        there = shapes_in_stacks(memory, xs if team is not None else {}, shapes)
        everyone: dict[int, Any] = dict(sorted({**there.xs, **leaves}.items()))
        both = {**rows, **there.rows}
        order = {k: stack.order for k, stack in kept.items()}
        places = run_every(
            step, matrix.every, everyone, both, shapes, eager, team, order, missing
        )
    apply(matrix.formula, leaves, wide | {k: dtypes[k] for k in alone})
    new = {
        k: {name: encoded_like(stored[k][name], x) for name, x in row.items()}
        for k, row in rows.items()
    }
    for k in alone:
        updates[k] = leaves[k]
        memory.rows[k] = (*memory.rows[k][:start], *new[k].values())
    for k, stack in kept.items():
        for j, u in stack.split(leaves[k], xs, dtypes).items():
            updates[j] = u
        memory.put(stack.place, stack.only_where(xs, new[k], stack.memory))
    if memory.teams and team is not None:
        run_teams(step, updates, memory, dtypes, places, eager, team, missing)


def _apply(
    part: Part,
    numbers: Sequence[Real],
    xs: dict[int, Leaf],
    rows: dict[int, dict[str, PyTree]],
    shapes: Mapping[int, Shape],
    dtypes: Dtypes,
    team: Team | None,
    apart: Collection[int],
) -> None:
    """Run a matrix formula over stacks of the leaves, in place.

    Args:
        part: the formula.
        numbers: its arguments.
        xs: the leaves.
        rows: for each leaf, its memory by name.
        shapes: the shape of each leaf as a stack of matrices.
        dtypes: the dtype of each result.
        team: the devices that share each stack; `None` to let the compiler decide.
        apart: leaves that are stacks already.
    """
    # Memory that the formula does not use is not stacked.
    asked = names_of(part.function).arrays
    part = part._replace(memory=tuple(name for name in part.memory if name in asked))
    leaves = list(xs)
    mine = {
        k: _viewed(tuple(rows[k][name] for name in part.memory), xs[k].shape, shapes[k])
        for k in leaves
    }
    own = {k: k for k in apart}
    kinds = [(own.get(k), dtypes[k], *memory_kind(shapes[k], mine[k])) for k in leaves]
    arrays = [xs[k] for k in leaves]
    for group in stacks(arrays, kinds, [shapes[k] for k in leaves], team):
        ks = [leaves[j] for j in group]
        formula = stacking(part, tuple(shapes[k] for k in ks), dtypes[ks[0]], team)
        results = formula([xs[k] for k in ks], [mine[k] for k in ks], tuple(numbers))
        for k, (u, new) in zip(ks, results, strict=True):
            xs[k] = u
            old = tuple(rows[k][name] for name in part.memory)
            like = lambda y, old: reshaped(y, old.shape, old)
            new = jax.tree.map(like, new, old)
            rows[k].update(zip(part.memory, new, strict=True))


def _viewed(row: Row, shape: Shape, folded: Shape) -> Row:
    """Memory that looks like a leaf with more axes than a matrix, as matrices."""
    view = lambda y: reshaped(y, folded) if y.shape == shape else y
    return jax.tree.map(view, row) if len(shape) > len(folded) else row


@lru_cache(maxsize=COMPILED)
def stacking(
    part: Part,
    shapes: tuple[Shape, ...],
    dtype: np.dtype | None,
    team: Team | None = None,
) -> Callable[..., list[tuple[Array, Row]]]:
    """A compiled matrix formula, for arrays that `stacks` has grouped.

        ([x, ...], [row, ...], numbers) -> [(u, row), ...]

    Args:
        part: the matrix formula.
        shapes: the shape of each array as a stack of matrices: (*stack, m, n).
        dtype: the dtype of the results; `None` to leave them in float32 or wider.
        team: the devices that share the stack; `None` to let the compiler decide.
    """
    one, stack = partial(one_matrix, part), Stack(shapes)

    def all_at_once(
        xs: Sequence[Array], rows: Sequence[Row], numbers: Numbers
    ) -> list[tuple[Array, Row]]:
        if stack.is_one_matrix:
            u, row = one(xs[0].reshape(stack.matrix), rows[0], numbers)
            return [(u.reshape(xs[0].shape), row)]
        # Traced for one matrix, then for a stack: sooner than both at once.
        many = jax.vmap(inlined(partial(one, late=True)), (0, 0, None))
        x, memory = stack.joined(xs), stack.joined_memory(rows)
        if team is None or len(x) == 1:  # one large matrix is too much for one device
            results = many(x, memory, numbers)
        else:
            assert not part.memory  # else it is kept in stacks
            results = divided(team, lambda x, _: many(x, (), numbers), x)
        return stack.split(results, xs, rows, memory, one_device=team is None)

    def run(
        xs: Sequence[Array], rows: Sequence[Row], numbers: Numbers
    ) -> list[tuple[Array, Row]]:
        if len(xs) > 1 and team is None:
            results = all_at_once(xs, rows, numbers)
        else:
            like = list(zip(xs, rows, strict=True))
            results = sharded_like(like, all_at_once, xs, rows, numbers)
        if dtype is None:
            return results
        return [(restore(u, dtype), row) for u, row in results]

    return jax.jit(run)
