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
from ...numerics import (
    cond_in,
    divided,
    inlined,
    members,
    most_in_stack,
    sharded_like,
    short_programs,
    Team,
    unknown,
    wide_dtype,
)
from ..leaves import Leaf, mixing, restore, widen
from ._formula import COMPILED, Numbers, Part, part_of, result
from ._per_step import Step
from ._turns import in_proportion, Turns, Work

Shape = tuple[int, ...]
# The arguments of the formula, or the values it changes. Arrays have a leading axis.
Arrays = tuple[PyTree, ...]
Start = int | Int[Array, ""]


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
    team: Team | None = None,
) -> None:
    """Change the memory of the matrices whose turn it is, in place.

    Args:
        step: the rule, with its numbers.
        every: what it does only in some steps.
        xs: the leaves.
        rows: for each leaf, its memory by name.
        shapes: the shape of each leaf as a stack of matrices.
        eager: whether Python numbers that only multiply are arguments.
        team: the devices that share each stack; by default the compiler decides.
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
        groups.setdefault(_kind(cell, team), []).append(cell)
    shares = [_work(group) for group in groups.values()]
    for group, turns in zip(groups.values(), in_proportion(shares, k), strict=True):
        sizes = tuple(len(_arrays(cell)[0]) for cell in group)
        change = _changing(part, every.writes, sizes, turns, team)
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
    join = lambda y: jax.lax.reshape(y, (prod(y.shape[:axes]), *y.shape[axes:]))
    return jax.tree.map(join, tree)


def _arrays(cell: Cell) -> list[Array]:
    return jax.tree.leaves(cell.arrays)


def _kind(cell: Cell, team: Team | None) -> Hashable:
    """What two cells must have in common to share a stack."""
    arrays = [(y.shape[1:], y.dtype) for y in _arrays(cell)]
    mesh = jax.typeof(_arrays(cell)[-1]).sharding.mesh
    alone = team is None and AxisType.Explicit in mesh.axis_types
    place = (cell.leaf, cell.side) if alone else None
    return tuple(arrays), jax.tree.structure(cell.arrays), place


def _write(
    row: dict[str, PyTree], side: int | None, writes: Sequence[str], values: Arrays
) -> None:
    """Put the new values into the memory of a leaf."""
    for name, value in zip(writes, values, strict=True):
        like = lambda x, old: jax.lax.reshape(x, old.shape)
        if side is None:
            row[name] = jax.tree.map(like, value, row[name])
        else:
            parts = list(row[name])
            parts[side] = jax.tree.map(like, value, parts[side])
            row[name] = type(row[name])(parts)


def _work(group: Sequence[Cell]) -> Work:
    """The work for a group, if it takes the time of products of square matrices."""
    members = sum(len(_arrays(cell)[0]) for cell in group)
    side = max(max(y.shape[1:], default=1) for y in _arrays(group[0]))
    return Work(members, members * side**3)


class Formula(NamedTuple):
    """A formula, and how it runs."""

    part: Part
    places: tuple[int, ...]  # the arguments that it changes
    team: Team | None  # the devices that share each stack


@lru_cache(maxsize=COMPILED)
def _changing(
    part: Part,
    writes: tuple[str, ...],
    sizes: tuple[int, ...],
    turns: Turns | None,
    team: Team | None,
) -> Callable[..., list[Arrays]]:
    """A compiled function of cells that `run_every` has grouped.

        ([arrays, ...], numbers, when) -> [the arrays of `writes`, ...]

    `when` is the number of steps taken, or without `turns`, whether to change all.

    Args:
        part: the formula.
        writes: the names of the memory that it changes.
        sizes: the number of matrices in each cell.
        turns: when the matrices have their turns.
        team: the devices that share each stack; `None` to let the compiler decide.
    """
    places = tuple(part.memory.index(name) for name in writes)
    formula = Formula(part, places, team)

    def change(cells: Sequence[Arrays], numbers: Numbers, when: Array) -> list[Arrays]:
        cells = jax.lax.stop_gradient(cells)
        if turns is not None and turns.period > 1:
            turn = (when - turns.first) % turns.period
            if team is None and _compiles_sooner_in_a_stack(cells):
                return _in_turn_in_a_stack(formula, turns, cells, numbers, turn)
            return _in_turn(formula, turns.windows(sizes), cells, numbers, turn)
        new = lambda cells, numbers: _all(formula, cells, numbers)
        if turns is not None:
            return new(cells, numbers)
        old = lambda cells, numbers: _old(places, cells)
        return cond_in(team, when, new, old, cells, numbers)

    def run(cells: Sequence[Arrays], numbers: Numbers, when: Array) -> list[Arrays]:
        if len(cells) > 1 and team is None:
            return change(cells, numbers, when)
        return sharded_like(_old(places, cells), change, cells, numbers, when)

    return jax.jit(run)


def _all(formula: Formula, cells: Sequence[Arrays], numbers: Numbers) -> list[Arrays]:
    """The new values of all matrices."""
    new = _new_values(formula, _joined(cells), numbers)
    sizes = [len(jax.tree.leaves(cell)[0]) for cell in cells]
    ends = np.cumsum([0, *sizes]).tolist()
    return [_members(new, a, b) for a, b in pairwise(ends)]


def _in_turn(
    formula: Formula,
    windows: Sequence[Sequence[tuple[int, int, int]]],
    cells: Sequence[Arrays],
    numbers: Numbers,
    turn: Int[Array, ""],
) -> list[Arrays]:
    """The new values of the matrices whose turn it is, and the old ones of the others.

    Args:
        formula: the formula.
        windows: the matrices in each turn.
        cells: its arguments.
        numbers: its numbers.
        turn: which turn it is; nobody's, if there are fewer windows.
    """

    def window(c: int, cells: Sequence[Arrays]) -> Arrays:
        return _joined([_members(cells[j], a, b) for j, a, b in windows[c]])

    def new(turn: Array, cells: Sequence[Arrays], numbers: Numbers) -> Arrays:
        # Only the matrices of this turn are copied to a stack.
        branches = [partial(window, c) for c in range(len(windows))]
        stack = jax.lax.switch(turn, branches, cells)
        return _new_values(formula, stack, numbers)

    def nothing(turn: Array, cells: Sequence[Arrays], numbers: Numbers) -> Arrays:
        (unused,) = _old(formula.places, [window(0, cells)])
        return jax.tree.map(jnp.zeros_like, unused)

    # The condition returns a few matrices. If it returned all, XLA would copy them.
    is_turn = turn < len(windows)
    values = cond_in(formula.team, is_turn, new, nothing, turn, cells, numbers)
    changed = _old(formula.places, cells)
    width = len(jax.tree.leaves(values)[0])
    starts, mine = (unknown(range(n), turn) for n in (width, len(windows)))
    for c, places_in_turn in enumerate(windows):
        at, now = 0, turn == mine[c]
        for j, a, b in places_in_turn:
            put = partial(_put, now, a, b, starts[at])
            changed[j] = jax.tree.map(put, changed[j], values)
            at += b - a
    return changed


_SOME = 4  # fewer cells have few windows, which compile as soon


def _compiles_sooner_in_a_stack(cells: Sequence[Arrays]) -> bool:
    """Whether to use `_in_turn_in_a_stack`. With a mesh, it would send more."""
    on_mesh = any(not jax.typeof(y).sharding.mesh.empty for y in jax.tree.leaves(cells))
    return len(cells) >= _SOME and short_programs() and not on_mesh


def _in_turn_in_a_stack(
    formula: Formula,
    turns: Turns,
    cells: Sequence[Arrays],
    numbers: Numbers,
    turn: Int[Array, ""],
) -> list[Arrays]:
    """The same as `_in_turn`, with all matrices in one stack.

    This copies more, but compiles sooner on a CPU: a stack for each turn is a loop for
    each of them. SOAP on 40 matrices of 96 x 96 takes as long per step, and compiles in
    90% of the time (JAX 0.10.2). Benchmark: `python -m benchmarks.compile`.

    Args:
        formula: the formula.
        turns: when the matrices have their turns.
        cells: its arguments.
        numbers: its numbers.
        turn: which turn it is; nobody's, if it is not below `turns.count`.
    """
    sizes = [len(jax.tree.leaves(cell)[0]) for cell in cells]
    width = turns.width(sum(sizes))
    # A slice that would end after the stack begins earlier, as the last window does.
    start = turn * width
    window = lambda tree: jax.tree.map(
        lambda y: jax.lax.dynamic_slice_in_dim(y, start, width), tree
    )
    old = _joined(_old(formula.places, cells))

    def new(old: Arrays, cells: Sequence[Arrays], numbers: Numbers) -> Arrays:
        # The other arguments are only copied if they are needed.
        others = _joined([_without(formula.places, cell) for cell in cells])
        rest, changing = iter(others), dict(zip(formula.places, old, strict=True))
        names = range(len(cells[0]))
        stack = tuple(changing[j] if j in changing else next(rest) for j in names)
        return _new_values(formula, window(stack), numbers)

    same = lambda old, cells, numbers: window(old)
    values = jax.lax.cond(turn < turns.count, new, same, old, cells, numbers)
    put = lambda y, x: jax.lax.dynamic_update_slice_in_dim(y, x, start, axis=0)
    changed = jax.tree.map(put, old, values)
    starts = np.cumsum([0, *sizes[:-1]]).tolist()
    starts = unknown(starts, jax.tree.leaves(changed)[0])
    return [
        jax.tree.map(lambda y, a=a, many=many: members(y, a, many), changed)
        for a, many in zip(starts, sizes, strict=True)
    ]


def _without(places: Sequence[int], cell: Arrays) -> Arrays:
    return tuple(y for j, y in enumerate(cell) if j not in places)


def _put(
    now: Bool[Array, ""], a: int, b: int, at: Start, old: Array, values: Array
) -> Array:
    """`old` with the members from `a` to `b` replaced by some of `values`, if `now`.

    Args:
        now: whether to replace them.
        a: the first member that is replaced.
        b: the one after the last.
        at: the first of the new ones in `values`.
        old: the members of one cell.
        values: the new members of all cells in this turn.
    """
    new = members(values, at, b - a)
    if b - a < len(old):
        new = jnp.concatenate([old[:a], new, old[b:]])
    return jax.lax.select(now, new, old)


def _old(places: Sequence[int], cells: Sequence[Arrays]) -> list[Arrays]:
    """The values that the formula may change."""
    return [tuple(cell[j] for j in places) for cell in cells]


def _joined(cells: Sequence[Arrays]) -> Arrays:
    return jax.tree.map(lambda *ys: jnp.concatenate(ys), *cells)


def _members(arrays: Arrays, a: int, b: int) -> Arrays:
    return jax.tree.map(lambda y: members(y, a, b - a), arrays)


def _new_values(formula: Formula, stack: Arrays, numbers: Numbers) -> Arrays:
    """The formula for a stack of matrices, cut into stacks of a good size."""
    part, places, team = formula
    arrays = jax.tree.leaves(stack)
    size = max(1, *(y[0].size * y.dtype.itemsize for y in arrays))
    many = len(arrays[0])
    most = most_in_stack(size, 1 if team is None else team.size)
    pieces = -(-many // most)
    # Traced for one matrix, then for a stack: sooner than both at once.
    one = jax.vmap(inlined(partial(_one, part, places)), (0, None))

    def several(stack: Arrays) -> Arrays:
        if team is None:
            return one(stack, numbers)
        named = dict(zip(part.memory, stack, strict=True))
        names = [part.memory[j] for j in places]
        like = {name: named[name] for name in names}

        def new(stacks: dict[str, PyTree]) -> dict[str, PyTree]:
            values = one(tuple(stacks[name] for name in part.memory), numbers)
            return dict(zip(names, values, strict=True))

        results = divided(team, new, like, named)
        return tuple(results[name] for name in names)

    if pieces == 1:
        return several(stack)
    cuts = [round(many * c / pieces) for c in range(pieces + 1)]
    return _joined([several(_members(stack, a, b)) for a, b in pairwise(cuts)])


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
