"""The new values of some matrices of a stack, on one device."""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int, PyTree

from ...numerics import (
    can_replace,
    inlined,
    members,
    most_in_chain,
    on_cuda,
    replaced,
    unknown,
    wide_dtype,
    Window,
)
from ..leaves import mixing, restore, widen_all
from ._formula import Numbers, Part, result
from ._turns import Places, Turns

# The arguments of the formula, or the values it changes. Arrays have a leading axis.
Arrays = tuple[PyTree, ...]
Start = int | Int[Array, ""]


class Formula(NamedTuple):
    """A formula, and what it changes."""

    part: Part
    places: tuple[int, ...]  # the arguments that it changes


def formula_of(part: Part, writes: Sequence[str]) -> Formula:
    """A formula that changes some of its arguments.

    Args:
        part: the formula.
        writes: the names of what it changes.
    """
    return Formula(part, tuple(part.memory.index(name) for name in writes))


def change_some(
    formula: Formula,
    place: Places,
    order: Sequence[Sequence[int]],
    arrays: Arrays,
    numbers: Numbers,
    when: Array,
    device: Start,
    choose: Callable[..., Arrays],
) -> Arrays:
    """The new values of the matrices whose turn it is, on one device.

    Args:
        formula: the formula.
        place: the place of all matrices of the stack among those that have turns.
        order: for each device, the indices of its matrices; see `Places.windows`.
        arrays: its arguments, for the matrices of this device.
        numbers: its numbers.
        when: the number of steps taken, or without turns, whether to change all.
        device: the index of this device.
        choose: a function like `cond_under_vmap`.
    """
    old = lambda arrays, numbers: old_values(formula.places, [arrays])[0]
    new = partial(new_values, formula)
    turns = place.turns
    if turns is None:
        return choose(when, new, old, arrays, numbers)
    if turns.period == 1:
        return new(arrays, numbers)
    starts, inside = place.windows(order)
    width = inside.shape[-1]
    turn = (when - turns.first) % turns.period
    which = jnp.minimum(turn, turns.count - 1)
    start = jnp.asarray(starts.astype(np.int32))[which, device]
    mine = jnp.asarray(inside)[which, device] & (turn < turns.count)

    def window(start: Array, arrays: Arrays) -> Arrays:
        return jax.tree.map(lambda y: members(y, start, width), arrays)

    # The condition returns a few matrices. If it returned all, XLA would copy them.
    values = choose(
        jnp.any(mine),
        lambda start, arrays, numbers: new(window(start, arrays), numbers),
        lambda start, arrays, numbers: old(window(start, arrays), numbers),
        start,
        arrays,
        numbers,
    )

    def put(was: Array, value: Array) -> Array:
        before = members(was, start, width)
        pick = mine.reshape(width, *[1] * (was.ndim - 1))
        chosen = jnp.where(pick, value, before)
        return jax.lax.dynamic_update_slice_in_dim(was, chosen, start, 0)

    return jax.tree.map(put, old(arrays, numbers), values)


def change_in_a_stack(
    formula: Formula,
    turns: Turns,
    cells: Sequence[Arrays],
    numbers: Numbers,
    turn: Int[Array, ""],
) -> list[Arrays]:
    """The new values of the matrices of several leaves whose turn it is, in one stack.

    This copies more than a stack for each turn, but compiles sooner on a CPU: a stack
    for each turn is a loop for each of them. SOAP on 40 matrices of 96 x 96 takes as
    long per step, and compiles in 90% of the time (JAX 0.10.2). Benchmark: `python -m
    benchmarks.compile`.

    Args:
        formula: the formula.
        turns: when the matrices have their turns.
        cells: its arguments, for each leaf.
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
    old = joined_cells(old_values(formula.places, cells))

    def new(old: Arrays, cells: Sequence[Arrays], numbers: Numbers) -> Arrays:
        # The other arguments are only copied if they are needed.
        others = joined_cells([_without(formula.places, cell) for cell in cells])
        rest, changing = iter(others), dict(zip(formula.places, old, strict=True))
        names = range(len(cells[0]))
        stack = tuple(changing[j] if j in changing else next(rest) for j in names)
        return new_values(formula, window(stack), numbers)

    same = lambda old, cells, numbers: window(old)
    values = jax.lax.cond(turn < turns.count, new, same, old, cells, numbers)
    put = lambda y, x: jax.lax.dynamic_update_slice_in_dim(y, x, start, axis=0)
    changed = jax.tree.map(put, old, values)
    starts = unknown(np.cumsum([0, *sizes[:-1]]).tolist())
    return [
        jax.tree.map(lambda y, a=a, many=many: members(y, a, many), changed)
        for a, many in zip(starts, sizes, strict=True)
    ]


def _without(places: Sequence[int], cell: Arrays) -> Arrays:
    return tuple(y for j, y in enumerate(cell) if j not in places)


def old_values(places: Sequence[int], cells: Sequence[Arrays]) -> list[Arrays]:
    """The values that the formula may change."""
    return [tuple(cell[j] for j in places) for cell in cells]


def joined_cells(cells: Sequence[Arrays]) -> Arrays:
    return jax.tree.map(lambda *ys: jnp.concatenate(ys), *cells)


def members_of(arrays: Arrays, a: int, b: int) -> Arrays:
    return jax.tree.map(lambda y: members(y, a, b - a), arrays)


def new_values(formula: Formula, stack: Arrays, numbers: Numbers) -> Arrays:
    """The formula for a stack of matrices, cut into stacks of a good size."""
    part, places = formula
    arrays = jax.tree.leaves(stack)
    size = max(1, *(y[0].size * y.dtype.itemsize for y in arrays))
    many = len(arrays[0])
    pieces = -(-many // most_in_chain(size))
    # Traced for one matrix, then for a stack: sooner than both at once.
    many_at_once = jax.vmap(inlined(partial(_one, part, places)), (0, None))
    one = lambda stack: many_at_once(stack, numbers)
    if pieces == 1:
        return one(stack)
    cuts = [round(many * c / pieces) for c in range(pieces + 1)]
    return joined_cells([one(members_of(stack, a, b)) for a, b in pairwise(cuts)])


def _one(part: Part, places: Sequence[int], arrays: Arrays, numbers: Numbers) -> Arrays:
    """The formula for one matrix."""
    real = wide_dtype(jax.tree.leaves(arrays))
    memory, mine = widen_all((arrays, numbers), real)
    have = dict(zip(part.memory, memory, strict=True))
    with mixing(jax.tree.leaves(arrays)):
        new = result(part(have, mine))
    if len(new) != len(places):
        raise TypeError(
            f"{part.name}: {part.function.__name__} returns {len(new)} arrays, "
            f"expected {len(places)}."
        )
    old = tuple(arrays[j] for j in places)
    return jax.tree.map(lambda was, x: restore(x, was.dtype), old, new)


def put_in_turn(
    windows: Sequence[Window],
    turn: Int[Array, ""],
    values: Array,
    old: Sequence[Array],
) -> list[Array]:
    """The arrays of all cells, with the members whose turn it is replaced by `values`.

    Args:
        windows: the members in each turn.
        turn: which turn it is; nobody's, if there are fewer windows.
        values: the new members.
        old: the arrays.
    """

    def plain(turn: Array, values: Array, old: Sequence[Array]) -> list[Array]:
        changed = list(old)
        sizes = len(values), len(windows)
        starts, mine = (unknown(range(n)) for n in sizes)
        for c, window in enumerate(windows):
            at, now = 0, turn == mine[c]
            for j, a, b in window:
                changed[j] = _put(now, a, b, starts[at], changed[j], values)
                at += b - a
        return changed

    if not can_replace(old):
        return plain(turn, values, old)
    return on_cuda(partial(replaced, windows), plain, turn, values, list(old))


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
