"""Changes of memory that are too expensive for every step.

The matrices take turns: in each step, a few of equal shape change their memory, so that
all steps take about the same time. Or all of them change it in the same step.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import lru_cache, partial
from itertools import chain, pairwise
from math import prod
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType
from jaxtyping import Array, Int, PyTree

from ...core import Every, names_of
from ...numerics import (
    cond_in,
    irregular_turn,
    reshaped,
    sharded_like,
    short_programs,
    Team,
    Window,
)
from ._changes import (
    Arrays,
    change_in_a_stack,
    change_some,
    Formula,
    formula_of,
    joined_cells,
    members_of,
    new_values,
    old_values,
    put_in_turn,
)
from ._formula import COMPILED, Numbers, Part, part_of
from ._per_step import Step
from ._turns import divide, Places, Turns, Work

Shape = tuple[int, ...]
# By the first leaf of a stack: for each of its matrices, its leaf, and where it is
# among the matrices of that.
Order = Mapping[int, Sequence[tuple[int, int]]]


class Cell(NamedTuple):
    """The arrays of one leaf, or of one side of its matrices, that change together."""

    leaf: int
    side: int | None  # 0 for rows, 1 for columns
    arrays: Arrays


def run_every(
    step: Step,
    every: Every,
    xs: dict[int, Any],
    rows: dict[int, dict[str, PyTree]],
    shapes: dict[int, Shape],
    eager: bool,
    team: Team | None = None,
    order: Order | None = None,
    missing: bool = False,
) -> dict[tuple[int, int | None], Places]:
    """Change the memory of the matrices whose turn it is, in place.

    Leaves whose memory is kept in stacks have turns as well, but are not changed here.
    Returned are their places among all matrices, by leaf and side.

    Args:
        step: the rule, with its numbers.
        every: what it does only in some steps.
        xs: the leaves. Those that are not changed here are shapes.
        rows: for each leaf, its memory by name, or the shapes of it.
        shapes: the shape of each leaf as a stack of matrices.
        eager: whether Python numbers that only multiply are arguments.
        team: the devices that share the stacks, if there are any.
        order: where the matrices of a leaf come from, if it is a stack of leaves.
        missing: whether some leaves have no gradient in this step.
    """
    part, numbers, k, when = calling(step, every, eager, missing)
    cells = _cells(every, part.memory, xs, rows, shapes)
    groups: dict[Hashable, list[Cell]] = {}
    for cell in cells:
        groups.setdefault(_kind(cell, team), []).append(cell)
    changed = formula_of(part, every.writes).places
    shares = [_work(group, changed) for group in groups.values()]
    places: dict[tuple[int, int | None], Places] = {}
    for group, turns in zip(groups.values(), divide(shares, k), strict=True):
        placed = _placed(group, order or {})
        total = sum(map(len, placed))
        mine = {
            (cell.leaf, cell.side): Places(turns, place, total)
            for cell, place in zip(group, placed, strict=True)
        }
        here = [cell for cell in group if not _is_shape(_arrays(cell)[0])]
        if len(here) == len(group):
            change = _changing(part, every.writes, placed, turns, team)
            new = change([cell.arrays for cell in group], numbers, when)
        else:  # the others are changed in stacks, in the same steps
            places |= mine
            new = []
            for cell in here:
                place = mine[cell.leaf, cell.side]
                change = _changing_some(part, every.writes, place, team)
                new.append(change(cell.arrays, numbers, when))
        for cell, values in zip(here, new, strict=True):
            _write(rows[cell.leaf], cell.side, every.writes, values)
    return places


_LEAP = 8  # periods


def calling(
    step: Step, every: Every, eager: bool, missing: bool
) -> tuple[Part, Numbers, int | None, Any]:
    """The formula, its numbers, the number of steps between turns, and the count.

    Without turns, the third is `None`, and the last tells whether all matrices change.

    A matrix may have a gradient only in every second step, and its turn always in the
    others. So turns come a step earlier after every `_LEAP` periods, and all matrices
    also change in some other steps in which a gradient is missing.

    Args:
        step: the rule, with its numbers.
        every: what it does only in some steps.
        eager: whether Python numbers that only multiply are arguments.
        missing: whether some leaves have no gradient in this step.
    """
    count: Any = step.begun.get("count")
    part, numbers = part_of(step.rule, every.formula, step.numbers, operands=eager)
    part = part._replace(memory=names_of(every.formula).arrays)
    if every.k is None:
        due: Any = step.numbers.get(every.due or "")
        if missing and every.period is not None:
            period: Any = step.numbers[every.period]
            due |= irregular_turn(count, period) == 0
        return part, tuple(numbers), None, due
    k = step.numbers[every.k]
    assert isinstance(k, int)  # how many matrices have a turn is a static number
    matrix = step.rule.matrix
    assert matrix is not None
    # If nothing was written to the memory yet, a turn would be lost, and the next one
    # comes k steps later.
    late = every.sides and matrix.before is None
    when = count - int(late)
    return part, tuple(numbers), k, when + jnp.maximum(when, 0) // (_LEAP * k)


def _cells(
    every: Every,
    names: Sequence[str],
    xs: dict[int, Any],
    rows: dict[int, dict[str, PyTree]],
    shapes: dict[int, Shape],
) -> list[Cell]:
    """The arguments of the formula, for each leaf, or for each side of each leaf."""
    cells = []
    for leaf, x in xs.items():
        *stack, m, n = shapes[leaf]
        for side in (0, 1) if every.sides else (None,):
            shape = *stack, m, n
            g = _struct(shape, x) if _is_shape(x) else reshaped(x, shape)
            have = {"g": g, **rows[leaf]}
            whole = [have[name] if side is None else have[name][side] for name in names]
            if any(y is None for y in whole):
                continue
            cells.append(Cell(leaf, side, tuple(_flat(len(stack), whole))))
    return [cell for cell in cells if _arrays(cell)[0].size]


def _flat(axes: int, tree: PyTree) -> PyTree:
    """The arrays with one leading axis in place of several, or of none."""

    def join(y: Any) -> Any:
        shape = prod(y.shape[:axes]), *y.shape[axes:]
        return _struct(shape, y) if _is_shape(y) else reshaped(y, shape)

    return jax.tree.map(join, tree)


def _is_shape(x: object) -> bool:
    return isinstance(x, jax.ShapeDtypeStruct)


def _struct(shape: Shape, like: Any) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, like.dtype)


def _arrays(cell: Cell) -> list[Any]:
    return jax.tree.leaves(cell.arrays)


def _kind(cell: Cell, team: Team | None) -> Hashable:
    """What two cells must have in common to share a stack."""
    arrays = [(y.shape[1:], y.dtype) for y in _arrays(cell)]
    alone = team is None and _is_explicit(_arrays(cell)[-1])
    place = (cell.leaf, cell.side) if alone else None
    return tuple(arrays), jax.tree.structure(cell.arrays), place


def _is_explicit(x: Array) -> bool:
    return AxisType.Explicit in jax.typeof(x).sharding.mesh.axis_types


def _placed(group: Sequence[Cell], order: Order) -> tuple[tuple[int, ...], ...]:
    """For each cell, the numbers of its matrices among all, in the order of leaves."""

    def keys(cell: Cell) -> list[tuple[int, int, int]]:
        own = ((cell.leaf, i) for i in range(len(_arrays(cell)[0])))
        return [(k, cell.side or 0, i) for k, i in order.get(cell.leaf, own)]

    rows = [keys(cell) for cell in group]
    number = {key: n for n, key in enumerate(sorted(chain.from_iterable(rows)))}
    return tuple(tuple(number[key] for key in row) for row in rows)


def _write(
    row: dict[str, PyTree], side: int | None, writes: Sequence[str], values: Arrays
) -> None:
    """Put the new values into the memory of a leaf."""
    for name, value in zip(writes, values, strict=True):
        like = lambda x, old: reshaped(x, old.shape, old)
        if side is None:
            row[name] = jax.tree.map(like, value, row[name])
        else:
            parts = list(row[name])
            parts[side] = jax.tree.map(like, value, parts[side])
            row[name] = type(row[name])(parts)


# The time of a turn, by what it does with the square array of a side, on an H200. The
# first two are products of PSGD: with the matrix, and with another square array. Passes
# over it take as long as a product with so many columns: of 5.0 ms for three sides of
# 3072 with SOAP, 2.0 were not for products.
_WITH_MATRIX, _WITH_ITSELF, _PASSES = 2, 5, 1500


def _work(group: Sequence[Cell], places: Sequence[int]) -> Work:
    """The work for a group, from the square arrays that change: one for each side.

    Args:
        group: cells of the same shapes.
        places: the arguments that the formula changes.
    """
    members = sum(len(_arrays(cell)[0]) for cell in group)
    largest = max(prod(y.shape[1:]) for y in _arrays(group[0]))
    changed = [x for j in places for x in jax.tree.leaves(group[0].arrays[j])]
    sides = [y.shape[1] for y in changed if y.ndim == 3 and y.shape[1] == y.shape[2]]
    products = _WITH_MATRIX + _WITH_ITSELF
    each = [
        d * (_WITH_MATRIX * largest + _WITH_ITSELF * d**2) / products + _PASSES * d**2
        for d in sides
    ]
    return Work(members, members * (sum(each) or largest))


@lru_cache(maxsize=COMPILED)
def _changing(
    part: Part,
    writes: tuple[str, ...],
    placed: tuple[tuple[int, ...], ...],
    turns: Turns | None,
    team: Team | None,
) -> Callable[..., list[Arrays]]:
    """A compiled function of cells that `run_every` has grouped.

        ([arrays, ...], numbers, when) -> [the arrays of `writes`, ...]

    `when` is the number of steps taken, or without `turns`, whether to change all.

    Args:
        part: the formula.
        writes: the names of the memory that it changes.
        placed: for each cell, the numbers of its matrices among all.
        turns: when the matrices have their turns.
        team: the devices that share the stacks, if there are any.
    """
    formula = formula_of(part, writes)
    places, total = formula.places, sum(map(len, placed))

    def change(cells: Sequence[Arrays], numbers: Numbers, when: Array) -> list[Arrays]:
        cells = jax.lax.stop_gradient(cells)
        if turns is not None and turns.period > 1:
            turn = (when - turns.first) % turns.period
            in_order = [*chain.from_iterable(placed)] == [*range(total)]
            if team is None and in_order and _compiles_sooner_in_a_stack(cells):
                return change_in_a_stack(formula, turns, cells, numbers, turn)
            windows = turns.windows(placed)
            return _in_turn(formula, team, windows, cells, numbers, turn)
        new = lambda cells, numbers: _all(formula, cells, numbers)
        if turns is not None:
            return new(cells, numbers)
        old = lambda cells, numbers: old_values(places, cells)
        return cond_in(team, when, new, old, cells, numbers)

    def run(cells: Sequence[Arrays], numbers: Numbers, when: Array) -> list[Arrays]:
        if len(cells) > 1 and team is None:
            return change(cells, numbers, when)
        return sharded_like(old_values(places, cells), change, cells, numbers, when)

    return jax.jit(run)


_SOME = 4  # fewer cells have few windows, which compile as soon


def _compiles_sooner_in_a_stack(cells: Sequence[Arrays]) -> bool:
    """Whether to use `change_in_a_stack`. With a mesh, it would send more."""
    on_mesh = any(not jax.typeof(y).sharding.mesh.empty for y in jax.tree.leaves(cells))
    return len(cells) >= _SOME and short_programs() and not on_mesh


def _all(formula: Formula, cells: Sequence[Arrays], numbers: Numbers) -> list[Arrays]:
    """The new values of all matrices."""
    new = new_values(formula, joined_cells(cells), numbers)
    sizes = [len(jax.tree.leaves(cell)[0]) for cell in cells]
    ends = np.cumsum([0, *sizes]).tolist()
    return [members_of(new, a, b) for a, b in pairwise(ends)]


@lru_cache(maxsize=COMPILED)
def _changing_some(
    part: Part, writes: tuple[str, ...], place: Places, team: Team | None
) -> Callable[..., Arrays]:
    """A compiled function of one cell, if other cells of its group are in stacks.

        (arrays, numbers, when) -> the arrays of `writes`

    Args:
        part: the formula.
        writes: the names of the memory that it changes.
        place: the place of the cell among all.
        team: the devices that share the stacks.
    """
    formula = formula_of(part, writes)
    order = [range(len(place.numbers))]
    choose = partial(cond_in, team)

    def change(cell: Arrays, numbers: Numbers, when: Array) -> Arrays:
        cell = jax.lax.stop_gradient(cell)
        return change_some(formula, place, order, cell, numbers, when, 0, choose)

    def run(cell: Arrays, numbers: Numbers, when: Array) -> Arrays:
        (old,) = old_values(formula.places, [cell])
        return sharded_like(old, change, cell, numbers, when)

    return jax.jit(run)


def _in_turn(
    formula: Formula,
    team: Team | None,
    windows: Sequence[Window],
    cells: Sequence[Arrays],
    numbers: Numbers,
    turn: Int[Array, ""],
) -> list[Arrays]:
    """The new values of the matrices whose turn it is, and the old ones of the others.

    Args:
        formula: the formula.
        team: the devices that share the stacks, if there are any.
        windows: the matrices in each turn.
        cells: its arguments.
        numbers: its numbers.
        turn: which turn it is; nobody's, if there are fewer windows.
    """

    def window(c: int, cells: Sequence[Arrays]) -> Arrays:
        return joined_cells([members_of(cells[j], a, b) for j, a, b in windows[c]])

    def new(turn: Array, cells: Sequence[Arrays], numbers: Numbers) -> Arrays:
        # Only the matrices of this turn are copied to a stack.
        branches = [partial(window, c) for c in range(len(windows))]
        stack = jax.lax.switch(turn, branches, cells)
        return new_values(formula, stack, numbers)

    def nothing(turn: Array, cells: Sequence[Arrays], numbers: Numbers) -> Arrays:
        (unused,) = old_values(formula.places, [window(0, cells)])
        return jax.tree.map(jnp.zeros_like, unused)

    # The condition returns a few matrices. If it returned all, XLA would copy them.
    is_turn = turn < len(windows)
    values = cond_in(team, is_turn, new, nothing, turn, cells, numbers)
    old = old_values(formula.places, cells)
    put = lambda new, *old: put_in_turn(windows, turn, new, old)
    changed = jax.tree.map(put, values, *old)
    return jax.tree.transpose(
        jax.tree.structure(values), jax.tree.structure([0] * len(old)), changed
    )
