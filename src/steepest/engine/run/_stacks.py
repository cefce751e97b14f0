"""Matrices of equal shape run through a matrix formula together, as one stack.

A formula with twenty products compiles to twenty products for a stack of a hundred
matrices, and the stack keeps an accelerator busy, which one small matrix would not.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PyTree

from ...core import names_of, Real
from ...numerics import (
    divided,
    inlined,
    joins_rows,
    members,
    sharded_like,
    Sum,
    Team,
    team_of,
    unknown,
)
from ..leaves import decoded, encoded_like, Leaf, restore
from ._every import run_every
from ._formula import COMPILED, Numbers, one_matrix, Part, part_of, Row
from ._grouping import folded_shape, memory_kind, Shape, stacks, wide_shape
from ._memory import Memory
from ._per_step import Step
from ._teams import run_teams, shapes_in_stacks
from ._turns import Places


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
    team = None
    if matrix.reshard and xs:
        team = team_of(rule.name, matrix.reshard, next(iter(xs.values())))
    # The matrices of a rule without such memory are stacked only in a step.
    sharing = None if rule.stacked else team
    stacked = {k for ks in memory.teams for k in ks}
    shapes = {k: folded_shape(rule, x.shape) for k, x in xs.items()}
    alone = {k: x for k, x in xs.items() if k not in stacked}
    names = rule.memory_names
    start = len(memory.rows[0]) - len(names) if memory.rows else 0
    stored = {k: dict(zip(names, memory.rows[k][start:], strict=True)) for k in alone}
    # Memory in few bits is decoded here, if a matrix formula uses it.
    rows = {
        k: {name: decoded(x) if name in matrix.arrays else x for name, x in row.items()}
        for k, row in stored.items()
    }
    if matrix.before is not None:
        part, numbers = part_of(rule, matrix.before, step.numbers, operands=eager)
        _apply(part, numbers, alone, rows, shapes, dict.fromkeys(alone), sharing)
    places: dict[tuple[int, int | None], Places] = {}
    if matrix.every is not None:
        # All matrices take turns, in whatever way their memory is kept.
        kept = shapes_in_stacks(memory, xs, shapes)
        everyone: dict[int, Any] = {k: alone.get(k, kept.xs.get(k)) for k in xs}
        both = {**rows, **kept.rows}
        places = run_every(step, matrix.every, everyone, both, shapes, eager, team)
    part, numbers = part_of(rule, matrix.formula, step.numbers, operands=eager)
    wanted = {k: dtypes[k] for k in alone}
    _apply(part, numbers, alone, rows, shapes, wanted, sharing)
    for k, x in alone.items():
        updates[k] = x
        new = (encoded_like(stored[k][name], x) for name, x in rows[k].items())
        memory.rows[k] = (*memory.rows[k][:start], *new)
    if memory.teams and team is not None:
        run_teams(step, updates, memory, dtypes, places, eager, team)


def _apply(
    part: Part,
    numbers: Sequence[Real],
    xs: dict[int, Leaf],
    rows: dict[int, dict[str, PyTree]],
    shapes: Mapping[int, Shape],
    dtypes: Mapping[int, np.dtype | None],
    team: Team | None,
) -> None:
    """Run a matrix formula over stacks of the leaves, in place.

    Args:
        part: the formula.
        numbers: its arguments.
        xs: the leaves.
        rows: for each leaf, its memory by name.
        shapes: the shape of each leaf as a stack of matrices.
        dtypes: the dtype of each result; `None` to leave it in float32 or wider.
        team: the devices that share each stack; `None` to let the compiler decide.
    """
    # Memory that the formula does not use is not stacked.
    asked = names_of(part.function).arrays
    part = part._replace(memory=tuple(name for name in part.memory if name in asked))
    leaves = list(xs)
    mine = {
        k: _viewed(tuple(rows[k][name] for name in part.memory), xs[k].shape, shapes[k])
        for k in leaves
    }
    kinds = [(dtypes[k], *memory_kind(shapes[k], mine[k])) for k in leaves]
    arrays = [xs[k] for k in leaves]
    for group in stacks(arrays, kinds, [shapes[k] for k in leaves], team):
        ks = [leaves[j] for j in group]
        formula = stacking(part, tuple(shapes[k] for k in ks), dtypes[ks[0]], team)
        results = formula([xs[k] for k in ks], [mine[k] for k in ks], tuple(numbers))
        for k, (u, new) in zip(ks, results, strict=True):
            xs[k] = u
            old = tuple(rows[k][name] for name in part.memory)
            like = lambda y, old: jax.lax.reshape(y, old.shape)
            new = jax.tree.map(like, new, old)
            rows[k].update(zip(part.memory, new, strict=True))


def _viewed(row: Row, shape: Shape, folded: Shape) -> Row:
    """Memory that looks like a leaf with more axes than a matrix, as matrices."""
    view = lambda y: y.reshape(folded) if y.shape == shape else y
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
    one, stack = partial(one_matrix, part), _Stack(shapes)

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


class _Stack:
    """How arrays are joined into one stack of matrices, and split again.

    If tall and wide matrices share a stack, the tall ones are transposed, and their
    results are transposed back.
    """

    def __init__(self, shapes: Sequence[Shape]):
        ends = {shape[-2:] for shape in shapes}
        self.matrix = ends.pop() if len(ends) == 1 else wide_shape(shapes[0])
        self.is_one_matrix = len(shapes) == 1 and len(shapes[0]) == 2
        self._shapes = shapes
        self._sizes = [prod(shape[:-2]) for shape in shapes]  # matrices in each array
        self._ends = np.cumsum([0, *self._sizes]).tolist()

    def joined(self, xs: Sequence[Array]) -> Array:
        """The arrays as one stack of shape (size, m, n)."""
        m, n = self.matrix
        by_rows = joins_rows(xs[0])
        part = lambda size: (size * m, n) if by_rows else (size, m, n)
        rows = zip(xs, self._shapes, self._sizes, strict=True)
        parts = [
            self._turned(x.reshape(shape), shape).reshape(part(size))
            for x, shape, size in rows
        ]
        return jnp.concatenate(parts).reshape(self._ends[-1], m, n)

    def joined_memory(self, rows: Sequence[Row]) -> Row:
        """The memory of the arrays, with one leading axis of the same size."""

        def join(*ys: Array) -> Array:
            memory = zip(ys, self._shapes, self._sizes, strict=True)
            return jnp.concatenate(
                [
                    jax.lax.reshape(y, (size, *y.shape[len(shape) - 2 :]))
                    for y, shape, size in memory
                ]
            )

        return jax.tree.map(join, *rows)

    def split(
        self,
        results: tuple[Array, Row],
        xs: Sequence[Array],
        rows: Sequence[Row],
        joined: Row,
        one_device: bool,
    ) -> list[tuple[Array, Row]]:
        """The result and the memory of each array, in the shapes of `xs` and `rows`.

        Args:
            results: of the formula, for the stack.
            xs: the arrays.
            rows: the memory of each.
            joined: the memory of the stack, before the formula.
            one_device: whether the stack is not shared by several devices.
        """
        (us, memory), parts = results, []
        starts = self._ends[:-1]
        starts = unknown(starts) if one_device else starts
        for k, (x, row) in enumerate(zip(xs, rows, strict=True)):
            shape = self._shapes[k]

            def pick(y: Array, k: int = k, outer: Shape = shape[:-2]) -> Array:
                mine = members(y, starts[k], self._sizes[k])
                return jax.lax.reshape(mine, (*outer, *y.shape[1:]))

            u = self._turned(pick(us), shape)
            new = partial(_new_memory, pick)
            parts.append((u.reshape(x.shape), jax.tree.map(new, joined, row, memory)))
        return parts

    def _turned(self, x: Array, shape: Shape) -> Array:
        return x if shape[-2:] == self.matrix else x.mT


def _new_memory(
    pick: Callable[[Array], Array], was: Array, old: Array, new: Array | Sum
) -> Array:
    """The new memory of one leaf.

    Args:
        pick: an array of the stack -> the part of the leaf.
        was: the memory of the stack, before the formula.
        old: the memory of the leaf.
        new: the memory of the stack, after the formula.
    """
    if new is was:  # the formula does not change it
        return old
    if isinstance(new, Sum):
        return restore(new.part(pick).after(old), old.dtype)
    return pick(new)
