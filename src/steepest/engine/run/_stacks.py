"""Matrices of one shape go through a matrix formula together, in one stack.

Twenty products of a stack of a hundred matrices are compiled as twenty products, and
keep an accelerator busy where those of one small matrix would not.
"""

from collections.abc import Callable, Hashable, Sequence
from functools import lru_cache, partial
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType

from ...core import names_of, Rule
from ...numerics import sharded_like, wide_dtype
from ..leaves import alike, mixing, restore, widen
from ._formula import COMPILED, Numbers, Part, part_of, result, Row
from ._memory import Memory
from ._per_step import Step

# The bytes a stack may take. Beyond a few large matrices nothing is won: on an H200
# twelve of 1600 x 6400, in float32, are each as fast as one of ninety-six.
MOST = 1 << 29
# The matrices in a stack. For the CPU each place in a stack is a loop of its own to
# compile, unless the next stack is just as large. Elsewhere putting more than eight
# together is slower than eight (7.0 ms against 2.8 for all of GPT-2 XL on an H200),
# unless they are small and there are launches to be saved.
ON_CPU, ELSEWHERE, SMALL_ONES = 16, 8, 256
SMALL = 1 << 26  # bytes


def stacks(
    arrays: Sequence[Any],
    kinds: Sequence[Hashable],
    shapes: Sequence[Any] | None = None,
) -> list[list[int]]:
    """The places of matrices that are treated in one stack, and of each other alone.

    Args:
        arrays: each with two axes or more, or `None` for one that is left out. Whether
            a matrix is tall or wide does not matter.
        kinds: what else must be equal.
        shapes: as what shapes the arrays are taken, if not as their own.
    """
    if shapes is None:
        shapes = [None if x is None else x.shape for x in arrays]
    rows: dict[Hashable, list[int]] = {}
    for k, (x, kind, shape) in enumerate(zip(arrays, kinds, shapes, strict=True)):
        if x is not None:
            _, dtype, where = alike(x)
            alone = AxisType.Explicit in jax.typeof(x).sharding.mesh.axis_types
            key = _lying(shape), dtype, where, kind, k if alone else None
            rows.setdefault(key, []).append(k)
    found = []
    for row in rows.values():
        largest = max(arrays[k].size * arrays[k].dtype.itemsize for k in row)
        size = _most(max(largest, 1))
        for part in [row] if len(row) <= size else _by_shape(row, shapes):
            pieces = np.array_split(part, _parts(len(part), size))
            found += [piece.tolist() for piece in pieces]
    return found


def _most(size: int) -> int:
    """How many matrices of so many bytes a stack may have."""
    many = ON_CPU
    if jax.default_backend() != "cpu":
        many = max(ELSEWHERE, min(SMALL_ONES, SMALL // size))
    return max(1, min(many, MOST // size))


def _by_shape(row: Sequence[int], of: Sequence[Any]) -> list[list[int]]:
    """Tall ones and wide ones apart: to turn a large matrix is a pass over it."""
    shapes = dict.fromkeys(of[k] for k in row)
    return [[k for k in row if of[k] == shape] for shape in shapes]


def _parts(n: int, most: int) -> int:
    """In how many stacks to put `n` matrices: equal ones, if twice as many suffice."""
    least = -(-n // most)
    return next((k for k in range(least, min(2 * least, n) + 1) if n % k == 0), least)


def run_stacks(
    step: Step,
    updates: list[Any],
    memory: Memory,
    dtypes: Sequence[Any],
    on: Sequence[bool],
    eager: bool,
) -> None:
    """Send what the last rule of a pass sees through its matrix formula, in place.

    Args:
        step: the last rule of the pass, with its numbers.
        updates: the leaves, as its `formula` has left them.
        memory: what the rules of the pass keep of each leaf.
        dtypes: what the results are returned in; `None` to leave one wide.
        on: for each leaf, whether the rule sees it.
        eager: whether Python numbers that only multiply are arguments.
    """
    rule, matrix = step.rule, step.rule.matrix
    assert matrix is not None
    part, numbers = part_of(rule, matrix.formula, step.numbers, operands=eager)
    every, more, due = None, [], None
    asked = names_of(matrix.formula).arrays
    if matrix.every is not None:
        refresh = matrix.every.formula
        every, more = part_of(rule, refresh, step.numbers, operands=eager)
        due = step.begun["count"] % step.numbers[matrix.every.k] == 0
        asked += names_of(refresh).arrays
    # Memory that only the other formula of the rule uses is not put into stacks.
    names = rule.memory_names
    used = tuple(name for name in names if name in asked)
    part = part._replace(memory=used)
    mine = [x if seen else None for x, seen in zip(updates, on, strict=True)]
    shapes = [None if x is None else _folded(rule, x.shape) for x in mine]
    columns = [k - len(names) for k, name in enumerate(names) if name in used]
    rows = [tuple(row[c] for c in columns) for row in memory.rows]
    kinds = [
        None if x is None else (dtype, *_memory_kind(shape, row))
        for x, dtype, shape, row in zip(mine, dtypes, shapes, rows, strict=True)
    ]
    for group in stacks(mine, kinds, shapes):
        together = tuple(shapes[k] for k in group)
        formula = stacking(part, every, together, dtypes[group[0]])
        results = formula(
            [mine[k] for k in group],
            [rows[k] for k in group],
            tuple(numbers),
            tuple(more),
            due,
        )
        for k, (u, new) in zip(group, results, strict=True):
            updates[k], kept = u, list(memory.rows[k])
            for c, x in zip(columns, new, strict=True):
                kept[c] = x
            memory.rows[k] = tuple(kept)


def _folded(rule: Rule, shape: tuple[int, ...]) -> tuple[int, ...]:
    """How a leaf of this shape is a stack of matrices."""
    fold = None if rule.matrix is None else rule.matrix.fold
    return shape if fold is None else tuple(fold(shape, **rule.asked_by(fold)))


def _memory_kind(shape: Any, row: Row) -> tuple[Hashable, ...]:
    """What two matrices must have in common for their memories to share a stack."""
    if not row:
        return ()
    arrays, treedef = jax.tree.flatten(row)
    # Rows and columns have memories of their own: matrices are not transposed.
    return shape[-2:], treedef, tuple(x.dtype for x in arrays)


@lru_cache(maxsize=COMPILED)
def stacking(
    part: Part, every: Part | None, shapes: tuple[tuple[int, ...], ...], dtype: Any
) -> Callable[..., list[Any]]:
    """A matrix formula, for arrays that `stacks` has put together.

        ([x, ...], [row, ...], numbers, more, due) -> [(u, row), ...]

    Where tall and wide matrices share a stack, the tall ones are laid on their sides,
    and their results set up again. Of more than two axes the last two are a matrix's.

    Args:
        part: the matrix formula.
        every: what happens to the memory in some steps, before the formula.
        shapes: of the arrays, as stacks of matrices: (*stack, m, n).
        dtype: what the results are returned in; `None` to leave them wide.
    """
    lying = {shape[-2:] for shape in shapes}
    m, n = lying.pop() if len(lying) == 1 else _lying(shapes[0])
    turned = lambda x, shape: x if shape[-2:] == (m, n) else x.mT
    sizes = [prod(shape[:-2]) for shape in shapes]
    ends = np.cumsum([0, *sizes]).tolist()
    alone = len(shapes) == 1 and len(shapes[0]) == 2

    def one(x: Any, row: Row, numbers: Numbers, more: Numbers, due: Any) -> Any:
        real = wide_dtype(jax.tree.leaves((x, row)))
        wide = lambda tree: jax.tree.map(lambda a: widen(a, real), tree)
        kept = dict(zip(part.memory, row, strict=True))
        with mixing([x]):
            if every is not None:
                refresh = partial(_refreshed, every, x, kept, wide, more)
                kept = jax.lax.cond(due, refresh, lambda: kept)
            u, *new = result(part({"g": x, **wide(kept)}, wide(numbers)))
        return u, tuple(part.renewed(kept, new).values())

    def stacked(x: Any, shape: tuple[int, ...], size: int) -> Any:
        return turned(x.reshape(shape), shape).reshape(size, m, n)

    def apart(found: Any, k: int, x: Any, row: Row) -> Any:
        a, b = ends[k], ends[k + 1]
        u, new = jax.tree.map(lambda y: y[a:b], found)
        u = turned(u.reshape(*shapes[k][:-2], m, n), shapes[k]).reshape(x.shape)
        return u, jax.tree.map(lambda y, was: y.reshape(was.shape), new, row)

    def stack(xs: Any, rows: Any, *rest: Any) -> list[Any]:
        if alone:
            u, row = one(xs[0].reshape(m, n), rows[0], *rest)
            return [(u.reshape(xs[0].shape), row)]
        flat = jnp.concatenate(list(map(stacked, xs, shapes, sizes)))
        join = lambda *ys: jnp.concatenate(
            [
                y.reshape(size, *y.shape[len(shape) - 2 :])
                for y, shape, size in zip(ys, shapes, sizes, strict=True)
            ]
        )
        memory = jax.tree.map(join, *rows)
        found = jax.vmap(one, (0, 0, None, None, None))(flat, memory, *rest)
        return [
            apart(found, k, x, row)
            for k, (x, row) in enumerate(zip(xs, rows, strict=True))
        ]

    def each(xs: Any, rows: Any, *rest: Any) -> list[Any]:
        if len(xs) > 1:
            results = stack(xs, rows, *rest)
        else:
            like = list(zip(xs, rows, strict=True))
            results = sharded_like(like, stack, xs, rows, *rest)
        if dtype is None:
            return results
        return [(restore(u, dtype), row) for u, row in results]

    return jax.jit(each)


def _refreshed(
    every: Part,
    x: Any,
    kept: dict[str, Any],
    wide: Callable[[Any], Any],
    more: Numbers,
) -> dict[str, Any]:
    """The memory of a matrix after what happens to it in some steps."""
    return every.renewed(kept, result(every({"g": x, **wide(kept)}, wide(more))))


def _lying(shape: tuple[int, ...]) -> tuple[int, int]:
    """Rows and columns of a matrix that lies on its longer side."""
    m, n = sorted(shape[-2:])
    return m, n
