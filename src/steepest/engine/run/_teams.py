"""Matrices whose memory is kept in stacks, each on the device that computes it.

In a step, only the matrices themselves are sent: there, and back.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import pairwise
from math import prod
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PyTree

from ...core import names_of, Rule
from ...numerics import (
    cond_under_vmap,
    divided,
    members,
    most_in_stack,
    sharded_like,
    Team,
)
from ..leaves import (
    collected,
    dealt,
    decoded,
    encoded_like,
    Leaf,
    restore,
    wide_dtype_of,
    widen,
)
from ._changes import change_some, formula_of
from ._every import calling
from ._formula import COMPILED, Numbers, one_matrix, Part, part_of
from ._grouping import Shape
from ._joined import common_dtype, where_on
from ._memory import Memory
from ._per_step import Step
from ._turns import Places

Named = dict[str, PyTree]
When = Array | None  # see `calling`


class Shapes(NamedTuple):
    """The shapes of leaves and of their memory."""

    xs: dict[int, jax.ShapeDtypeStruct]
    rows: dict[int, Named]


def shapes_in_stacks(
    memory: Memory, xs: dict[int, Leaf], shapes: dict[int, Shape]
) -> Shapes:
    """The shapes of the leaves in stacks, and of their memory, as if each had its own.

    Args:
        memory: the memory of all rules of a pass.
        xs: the leaves.
        shapes: the shape of each as a stack of matrices.
    """
    many = range(len(memory.teams))
    stacks = jax.eval_shape(decoded, [memory.stack(s) for s in many])
    struct = jax.ShapeDtypeStruct
    found = Shapes({}, {})
    for s, ks in enumerate(memory.teams):
        for k in (k for k in ks if k in xs):
            outer = shapes[k][:-2]
            one = lambda y, outer=outer: struct((*outer, *y.shape[1:]), y.dtype)
            found.xs[k] = struct(xs[k].shape, xs[k].dtype)
            found.rows[k] = {n: jax.tree.map(one, x) for n, x in stacks[s].items()}
    return found


class Sometimes(NamedTuple):
    """What changes only in some steps."""

    part: Part
    writes: tuple[str, ...]
    places: tuple[tuple[int | None, Places], ...]  # by side, or `None` for both


class Work(NamedTuple):
    """What is done with a stack in a step. It is hashable, so it can be cached."""

    first: tuple[Part, ...]  # formulas that run before `sometimes`
    sometimes: Sometimes | None
    last: Part
    shapes: tuple[Shape, ...]  # of the leaves, as stacks of matrices
    dtypes: tuple[np.dtype | None, ...]  # of the results
    devices: int  # the number of devices for which the stack is laid out
    team: Team  # the devices that compute it


def run_teams(
    step: Step,
    updates: list[Leaf | None],
    memory: Memory,
    dtypes: Sequence[np.dtype | None],
    places: dict[tuple[int, int | None], Places],
    eager: bool,
    team: Team,
    missing: bool,
) -> None:
    """Apply the formulas of a rule to the leaves in stacks, in place.

    Args:
        step: the rule, with its numbers.
        updates: the leaves.
        memory: the memory of all rules of the pass.
        dtypes: the dtype of each result; `None` to leave it in float32 or wider.
        places: by leaf and side, its place among the matrices that have turns.
        eager: whether Python numbers that only multiply are arguments.
        team: the devices that share the stacks.
        missing: whether some leaves have no gradient in this step.
    """
    rule, matrix = step.rule, step.rule.matrix
    assert matrix is not None
    functions = [rule.formula] if rule.formula_is_stacked else []
    functions += [f for f in (matrix.before, matrix.formula) if f is not None]
    calls = [_call(step, f, eager) for f in functions]
    *first, last = (part for part, _ in calls)
    numbers, sometimes, when, sides = [x for _, x in calls], None, None, False
    if matrix.every is not None:
        part, mine, _, when = calling(step, matrix.every, eager, missing)
        sometimes = Sometimes(part, matrix.every.writes, ())
        sides = matrix.every.sides
        numbers.append(mine)
    for s, ks in enumerate(memory.teams):
        layout = memory.layout
        if all(updates[k] is None for k in ks):
            continue
        inner = layout.stacks[s]
        work = Work(
            tuple(first),
            sometimes
            and sometimes._replace(places=_places(places, ks, layout.counts(s), sides)),
            last,
            tuple(layout.folded[j] or () for j in inner),
            tuple(dtypes[k] for k in ks),
            layout.devices,
            team,
        )
        xs = [updates[k] for k in ks]
        us, kept = _working(work)(xs, memory.stack(s), numbers, when)
        for k, u in zip(ks, us, strict=True):
            updates[k] = u
        memory.put(s, kept)


def _call(step: Step, f: Callable[..., object], eager: bool) -> tuple[Part, Numbers]:
    """A formula with the memory in stacks that it uses, and its numbers."""
    rule = step.rule
    part, numbers = part_of(rule, f, step.numbers, operands=eager)
    asked = names_of(f).arrays
    return part._replace(memory=_kept(rule, asked)), tuple(numbers)


def _kept(rule: Rule, asked: Sequence[str]) -> tuple[str, ...]:
    """The names of the memory in stacks that a formula asks for."""
    pairs = zip(rule.memory, rule.memory_names, strict=True)
    return tuple(k for field, k in pairs if field in rule.stacked and k in asked)


def _places(
    places: dict[tuple[int, int | None], Places],
    ks: Sequence[int],
    counts: Sequence[int],
    sides: bool,
) -> tuple[tuple[int | None, Places], ...]:
    """For each side, the places of the matrices of a stack.

    Args:
        places: by leaf and side.
        ks: the leaves of the stack.
        counts: the number of matrices of each.
        sides: whether the two sides of a matrix change separately.
    """
    result = []
    for side in (0, 1) if sides else (None,):
        mine = [places.get((k, side)) for k in ks]
        known = next(filter(None, mine), None)
        if known is not None:
            pairs = zip(mine, counts, strict=True)
            rows = [(-1,) * n if x is None else x.numbers for x, n in pairs]
            numbers = tuple(n for row in rows for n in row)
            result.append((side, known._replace(numbers=numbers)))
    return tuple(result)


@lru_cache(maxsize=COMPILED)
def _working(work: Work) -> Callable[..., tuple[list[Array | None], Named]]:
    """A compiled step for one stack.

        ([x, ...], kept, numbers, when) -> [u, ...], kept

    `x` and `u` are `None` for leaves without an update. `numbers` has the arguments of
    each formula, and `when` tells when to change what changes in some steps.

    Args:
        work: what is done.
    """
    counts = [prod(shape[:-2]) for shape in work.shapes]
    matrix = work.shapes[0][-2:]

    def all_at_once(
        xs: Sequence[Array | None], kept: Named, numbers: Sequence[Numbers], when: When
    ) -> tuple[list[Array | None], Named]:
        dtype = common_dtype(xs)
        rows = [
            jnp.zeros((n, *matrix), dtype)
            if x is None
            else x.reshape(n, *matrix).astype(dtype)
            for x, n in zip(xs, counts, strict=True)
        ]
        stack = dealt(jnp.concatenate(rows), work.devices)
        f = lambda x, kept: _on_one_device(work, x, kept, numbers, when)
        us, new = divided(work.team, f, stack, kept)
        us = collected(us, work.devices, sum(counts))
        if any(x is None for x in xs):
            on = [np.full(n, x is not None) for x, n in zip(xs, counts, strict=True)]
            on = dealt(jnp.asarray(np.concatenate(on)), work.devices)
            new = where_on(on, new, kept)
        ends = np.cumsum([0, *counts]).tolist()
        results = [
            None if x is None else us[a:b].reshape(x.shape)
            for x, (a, b) in zip(xs, pairwise(ends), strict=True)
        ]
        return results, new

    def run(
        xs: Sequence[Array | None], kept: Named, numbers: Sequence[Numbers], when: When
    ) -> tuple[list[Array | None], Named]:
        us, new = sharded_like(
            (list(xs), kept), all_at_once, list(xs), kept, numbers, when
        )
        pairs = zip(us, work.dtypes, strict=True)
        return [
            u if u is None or dtype is None else restore(u, dtype) for u, dtype in pairs
        ], new

    return jax.jit(run)


def _on_one_device(
    work: Work, x: Array, kept: Named, numbers: Sequence[Numbers], when: When
) -> tuple[Array, Named]:
    """The step for the matrices of one device."""
    memory = decoded(kept)
    x = widen(x, wide_dtype_of((x, memory)), integers=True)
    *before, last = zip((*work.first, work.last), numbers, strict=False)
    for part, mine in before:
        x, memory = _applied(part, x, memory, mine)
    if work.sometimes is not None and when is not None:
        memory = _sometimes(work, work.sometimes, x, memory, numbers[-1], when)
    part, mine = last
    x, memory = _applied(part, x, memory, mine)
    dtype, *others = set(work.dtypes)
    if dtype is not None and not others:  # less is sent back
        x = restore(x, dtype)
    return x, encoded_like(kept, memory)


def _applied(
    part: Part, x: Array, memory: Named, numbers: Numbers
) -> tuple[Array, Named]:
    """A formula for a stack of matrices, cut into stacks of a good size."""
    row = tuple(memory[name] for name in part.memory)
    many = jax.vmap(lambda x, row: one_matrix(part, x, row, numbers))
    size = -(-len(x) // most_in_stack(max(1, x[0].size * x.dtype.itemsize)))
    cuts = [round(len(x) * c / size) for c in range(size + 1)]
    pieces = [
        many(*jax.tree.map(lambda y, a=a, b=b: members(y, a, b - a), (x, row)))
        for a, b in pairwise(cuts)
    ]
    u, new = pieces[0]
    if len(pieces) > 1:
        u, new = jax.tree.map(lambda *ys: jnp.concatenate(ys), *pieces)
    return u, {**memory, **dict(zip(part.memory, new, strict=True))}


def _sometimes(
    work: Work, these: Sometimes, x: Array, memory: Named, numbers: Numbers, when: Array
) -> Named:
    """The memory after the changes of this step."""
    formula = formula_of(these.part, these.writes)
    device = jax.lax.axis_index(work.team.axes)
    order = _order(sum(prod(shape[:-2]) for shape in work.shapes), work)
    memory = dict(memory)
    for side, places in these.places:
        have = {"g": x, **memory}
        whole = [have[name] for name in these.part.memory]
        arrays = tuple(y if side is None else y[side] for y in whole)
        arrays = jax.lax.stop_gradient(arrays)
        new = change_some(
            formula, places, order, arrays, numbers, when, device, cond_under_vmap
        )
        for name, value in zip(these.writes, new, strict=True):
            if side is not None:
                both = list(memory[name])
                both[side] = value
                value = type(memory[name])(both)
            memory[name] = value
    return memory


def _order(many: int, work: Work) -> list[list[int]]:
    """For each device, the indices of its matrices in the stack; -1 for copies."""
    length = -(-many // work.devices) * work.devices
    numbers = np.pad(np.arange(many), (0, length - many), constant_values=-1)
    numbers = numbers.reshape(-1, work.devices).T.ravel()
    more = -length % work.team.size
    numbers = np.pad(numbers, (0, more), constant_values=-1)
    return numbers.reshape(work.team.size, -1).tolist()
