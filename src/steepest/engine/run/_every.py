"""Changes of memory that are too expensive for every step.

The matrices take turns: in each step, a few of equal shape change their memory, so that
all steps take about the same time. Or all of them change it in the same step.
"""

from collections.abc import Callable, Hashable, Sequence
from functools import lru_cache, partial
from itertools import pairwise
from math import prod
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType
from jaxtyping import Array, Bool, Int, PyTree

from ...core import Every, names_of
from ...numerics import most_in_stack, sharded_like, wide_dtype
from ..leaves import Leaf, mixing, restore, widen
from ._formula import COMPILED, Numbers, Part, part_of, result
from ._per_step import Step

Shape = tuple[int, ...]
# The arguments of the formula, or the values it changes. Arrays have a leading axis.
Arrays = tuple[PyTree, ...]


class Cell(NamedTuple):
    """The arrays of one leaf, or of one side of its matrices, that change together."""

    leaf: int
    side: int | None  # 0 for rows, 1 for columns
    arrays: Arrays


def run_every(
    step: Step,
    every: Every,
    xs: dict[int, Leaf],
    rows: dict[int, dict[str, PyTree]],
    shapes: dict[int, Shape],
    eager: bool,
) -> None:
    """Change the memory of the matrices whose turn it is, in place.

    Args:
        step: the rule, with its numbers.
        every: what it does only in some steps.
        xs: the leaves.
        rows: for each leaf, its memory by name.
        shapes: the shape of each leaf as a stack of matrices.
        eager: whether Python numbers that only multiply are arguments.
    """
    part, numbers = part_of(step.rule, every.formula, step.numbers, operands=eager)
    names = names_of(every.formula).arrays
    part = part._replace(memory=names)
    k, when = None, step.numbers.get(every.due or "")
    if every.k is not None:
        k, when = step.numbers[every.k], step.begun["count"]
        assert isinstance(k, int)  # how many matrices have a turn is a static number
    cells = _cells(every, names, xs, rows, shapes)
    groups: dict[Hashable, list[Cell]] = {}
    for cell in cells:
        groups.setdefault(_kind(cell), []).append(cell)
    for group in groups.values():
        sizes = tuple(len(_arrays(cell)[0]) for cell in group)
        change = _changing(part, every.writes, sizes, k)
        new = change([cell.arrays for cell in group], tuple(numbers), when)
        for cell, values in zip(group, new, strict=True):
            _write(rows[cell.leaf], cell.side, every.writes, values)


def _cells(
    every: Every,
    names: Sequence[str],
    xs: dict[int, Leaf],
    rows: dict[int, dict[str, PyTree]],
    shapes: dict[int, Shape],
) -> list[Cell]:
    """The arguments of the formula, for each leaf, or for each side of each leaf."""
    cells = []
    for leaf, x in xs.items():
        *stack, m, n = shapes[leaf]
        for side in (0, 1) if every.sides else (None,):
            have = {"g": x.reshape(*stack, m, n), **rows[leaf]}
            whole = [have[name] if side is None else have[name][side] for name in names]
            if any(y is None for y in whole):
                continue
            cells.append(Cell(leaf, side, tuple(_flat(len(stack), whole))))
    return [cell for cell in cells if _arrays(cell)[0].size]


def _flat(axes: int, tree: PyTree) -> PyTree:
    """The arrays with one leading axis in place of several, or of none."""
    join = lambda y: y.reshape(prod(y.shape[:axes]), *y.shape[axes:])
    return jax.tree.map(join, tree)


def _arrays(cell: Cell) -> list[Array]:
    return jax.tree.leaves(cell.arrays)


def _kind(cell: Cell) -> Hashable:
    """What two cells must have in common to share a stack."""
    arrays = [(y.shape[1:], y.dtype) for y in _arrays(cell)]
    mesh = jax.typeof(_arrays(cell)[-1]).sharding.mesh
    alone = AxisType.Explicit in mesh.axis_types
    place = (cell.leaf, cell.side) if alone else None
    return tuple(arrays), jax.tree.structure(cell.arrays), place


def _write(
    row: dict[str, PyTree], side: int | None, writes: Sequence[str], values: Arrays
) -> None:
    """Put the new values into the memory of a leaf."""
    for name, value in zip(writes, values, strict=True):
        like = lambda x, old: x.reshape(old.shape)
        if side is None:
            row[name] = jax.tree.map(like, value, row[name])
        else:
            parts = list(row[name])
            parts[side] = jax.tree.map(like, value, parts[side])
            row[name] = type(row[name])(parts)


class Turns:
    """Which matrices have their turn in which step.

    Each turn is a window of `width` matrices, counted over all cells of a stack.
    """

    def __init__(self, sizes: Sequence[int], k: int | None):
        total = sum(sizes)
        self.width = -(-total // (k or 1))
        self.count = -(-total // self.width)  # the number of turns
        # With fewer matrices than steps, there are steps without work.
        self.period = max(self.count, k or 1) if total < (k or 1) else self.count
        starts = [min(c * self.width, total - self.width) for c in range(self.count)]
        ends = np.cumsum([0, *sizes]).tolist()
        # For each turn: (cell, its first and last member) of each cell in the window.
        self.windows = [
            [
                (j, max(a, start) - a, min(b, start + self.width) - a)
                for j, (a, b) in enumerate(pairwise(ends))
                if max(a, start) < min(b, start + self.width)
            ]
            for start in starts
        ]


@lru_cache(maxsize=COMPILED)
def _changing(
    part: Part, writes: tuple[str, ...], sizes: tuple[int, ...], k: int | None
) -> Callable[..., list[Arrays]]:
    """A compiled function of cells that `run_every` has grouped.

        ([arrays, ...], numbers, when) -> [the arrays of `writes`, ...]

    `when` is the number of steps taken, or without `k`, whether to change all.

    Args:
        part: the formula.
        writes: the names of the memory that it changes.
        sizes: the number of matrices in each cell.
        k: the matrices take turns, so that each has its turn every `k` steps.
    """
    turns, places = Turns(sizes, k), [part.memory.index(name) for name in writes]

    def change(cells: Sequence[Arrays], numbers: Numbers, when: Array) -> list[Arrays]:
        cells = jax.lax.stop_gradient(cells)
        if k is not None and turns.period > 1:
            turn = when % turns.period
            return _in_turn(part, places, turns, cells, numbers, turn)
        new = lambda: _all(part, places, cells, numbers)
        return (
            jax.lax.cond(when, new, lambda: _old(places, cells)) if k is None else new()
        )

    def run(cells: Sequence[Arrays], numbers: Numbers, when: Array) -> list[Arrays]:
        if len(cells) > 1:
            return change(cells, numbers, when)
        return sharded_like(_old(places, cells), change, cells, numbers, when)

    return jax.jit(run)


def _all(
    part: Part, places: Sequence[int], cells: Sequence[Arrays], numbers: Numbers
) -> list[Arrays]:
    """The new values of all matrices."""
    new = _new_values(part, places, _joined(cells), numbers)
    sizes = [len(jax.tree.leaves(cell)[0]) for cell in cells]
    ends = np.cumsum([0, *sizes]).tolist()
    return [_members(new, a, b) for a, b in pairwise(ends)]


def _in_turn(
    part: Part,
    places: Sequence[int],
    turns: Turns,
    cells: Sequence[Arrays],
    numbers: Numbers,
    turn: Int[Array, ""],
) -> list[Arrays]:
    """The new values of the matrices whose turn it is, and the old ones of the others.

    Args:
        part: the formula.
        places: the arguments of the formula that it changes.
        turns: the matrices in each turn.
        cells: the arguments of the formula.
        numbers: its numbers.
        turn: which turn it is.
    """
    old = _old(places, cells)

    def window(c: int) -> Arrays:
        return _joined([_members(cells[j], a, b) for j, a, b in turns.windows[c]])

    def change() -> list[Arrays]:
        # Only the matrices of this turn are copied to a stack.
        branches = [lambda c=c: window(c) for c in range(turns.count)]
        stack = jax.lax.switch(turn, branches)
        new = _new_values(part, places, stack, numbers)
        changed = list(old)
        for c, members in enumerate(turns.windows):
            at = 0
            for j, a, b in members:
                put = partial(_put, turn == c, a, b)
                mine = _members(new, at, at + b - a)
                changed[j] = jax.tree.map(put, changed[j], mine)
                at += b - a
        return changed

    if turns.period == turns.count:
        return change()
    return jax.lax.cond(turn < turns.count, change, lambda: old)


def _put(now: Bool[Array, ""], a: int, b: int, old: Array, new: Array) -> Array:
    """`old` with the members from `a` to `b` replaced by `new`, if `now`."""
    if b - a < len(old):
        new = jnp.concatenate([old[:a], new, old[b:]])
    return jnp.where(now, new, old)


def _old(places: Sequence[int], cells: Sequence[Arrays]) -> list[Arrays]:
    """The values that the formula may change."""
    return [tuple(cell[j] for j in places) for cell in cells]


def _joined(cells: Sequence[Arrays]) -> Arrays:
    return jax.tree.map(lambda *ys: jnp.concatenate(ys), *cells)


def _members(arrays: Arrays, a: int, b: int) -> Arrays:
    return jax.tree.map(lambda y: y[a:b], arrays)


def _new_values(
    part: Part, places: Sequence[int], stack: Arrays, numbers: Numbers
) -> Arrays:
    """The formula for a stack of matrices, cut into stacks of a good size."""
    arrays = jax.tree.leaves(stack)
    size = max(1, *(y[0].size * y.dtype.itemsize for y in arrays))
    many, most = len(arrays[0]), most_in_stack(size)
    pieces = -(-many // most)
    one = jax.vmap(lambda arrays: _one(part, places, arrays, numbers))
    if pieces == 1:
        return one(stack)
    cuts = [round(many * c / pieces) for c in range(pieces + 1)]
    return _joined([one(_members(stack, a, b)) for a, b in pairwise(cuts)])


def _one(part: Part, places: Sequence[int], arrays: Arrays, numbers: Numbers) -> Arrays:
    """The formula for one matrix."""
    real = wide_dtype(jax.tree.leaves(arrays))
    wide = lambda tree: jax.tree.map(lambda x: widen(x, real), tree)
    have = dict(zip(part.memory, wide(arrays), strict=True))
    with mixing(jax.tree.leaves(arrays)):
        new = result(part(have, wide(numbers)))
    if len(new) != len(places):
        raise TypeError(
            f"{part.name}: {part.function.__name__} returns {len(new)} arrays, "
            f"expected {len(places)}."
        )
    old = tuple(arrays[j] for j in places)
    return jax.tree.map(lambda was, x: restore(x, was.dtype), old, new)
