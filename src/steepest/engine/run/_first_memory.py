"""The initial memory of a rule: for each leaf, or for stacks of matrices."""

from collections.abc import Collection, Hashable, Sequence
from dataclasses import replace
from math import prod
from typing import Any

import jax
from jaxtyping import Array, PyTree

from ...core import Rule
from ...numerics import is_coded, known_team, replicated_near, sharded_near
from ..leaves import Leaves, LowBits, Stacked, StackLayout
from ._grouping import folded_shape, in_pieces, Shape

Row = dict[str, PyTree]  # the memory of one leaf, by field


def first_memory(rule: Rule, storage: LowBits | None, leaves: Leaves) -> Row:
    """The initial memory of a rule by field, in the structure of the leaves.

    Args:
        rule: the rule.
        storage: of its memory, if it is stored in few bits.
        leaves: the leaves that its masks select, or their shapes.
    """
    layout = layout_of(rule, storage, leaves)
    fields = [k for k in rule.memory if layout is None or k not in rule.stacked]
    rows = _rows(rule, storage, leaves, fields)
    memory = {field: _column(leaves, rows, field) for field in fields}
    if layout is not None:
        memory |= _stacks(rule, storage, leaves, layout)
    return {field: memory[field] for field in rule.memory}


def layout_of(
    rule: Rule, storage: LowBits | None, leaves: Leaves
) -> StackLayout | None:
    """Which leaves share a stack in the memory of a rule; `None` if there is no stack.

    Args:
        rule: the rule.
        storage: of its memory, if it is stored in few bits.
        leaves: the leaves that its masks select, or their shapes.
    """
    if not rule.stacked or rule.matrix is None:
        return None
    begin = lambda: _rows(_unsharded(rule), storage, _structs(leaves), rule.stacked)
    rows = jax.eval_shape(begin)
    shapes = [None if x is None else tuple(x.shape) for x in leaves.arrays]
    folded = [None if x is None else folded_shape(rule, x) for x in shapes]
    groups: dict[Hashable, list[int]] = {}
    for k, (row, shape, matrices) in enumerate(zip(rows, shapes, folded, strict=True)):
        if row is None or shape is None or matrices is None or not prod(shape):
            continue
        *stack, m, n = matrices
        arrays, treedef = jax.tree.flatten(row, is_leaf=is_coded)
        each = [
            (m, n) if _is_viewed(x, shape, matrices) else x.shape[len(stack) :]
            for x in arrays
        ]
        kinds = [(getattr(x, "kind", ""), x.dtype) for x in arrays]
        kind = leaves.arrays[k].dtype, (m, n), treedef, (*each,), (*kinds,)
        groups.setdefault(kind, []).append(k)
    stacks = [ks for ks in groups.values() if _members(folded, ks) > 1]
    if not rule.matrix.reshard:
        size = lambda k: prod(shapes[k]) * leaves.arrays[k].dtype.itemsize
        stacks = [piece for ks in stacks for piece in in_pieces(ks, max(map(size, ks)))]
        stacks = [ks for ks in stacks if len(ks) > 1]  # one leaf is a stack already
    if not stacks:
        return None
    team = known_team(rule.matrix.reshard, leaves.arrays)
    return StackLayout(
        leaves.treedef,
        tuple(shapes),
        tuple(folded),
        tuple(map(tuple, stacks)),
        1 if team is None else team.size,
    )


def _members(folded: Sequence[Shape | None], ks: Sequence[int]) -> int:
    """The number of matrices in these leaves."""
    return sum(prod((folded[k] or ())[:-2]) for k in ks)


def _is_viewed(x: Any, shape: Shape, folded: Shape) -> bool:
    """Whether memory looks like a leaf with more axes than its stack of matrices."""
    return len(shape) > len(folded) and tuple(x.shape) == shape


def _stacks(
    rule: Rule, storage: LowBits | None, leaves: Leaves, layout: StackLayout
) -> Row:
    """The memory of the matrix formulas, by field."""
    inside = {k for stack in layout.stacks for k in stack}

    def some(leaves: Leaves, on: bool) -> Leaves:
        pairs = enumerate(leaves.arrays)
        arrays = [x if (k in inside) == on else None for k, x in pairs]
        return Leaves(leaves.like(arrays), leaves.name)

    # Params are sharded in another way than the stacks, so these are made of shapes.
    stacked = _rows(
        _unsharded(rule), storage, some(_structs(leaves), True), rule.stacked
    )
    whole = _rows(rule, storage, some(leaves, False), rule.stacked)
    rows = [a if b is None else b for a, b in zip(stacked, whole, strict=True)]

    def flags(k: int, field: str) -> tuple[bool, ...]:
        arrays = jax.tree.leaves((rows[k] or {})[field], is_leaf=is_coded)
        shape, folded = layout.shapes[k] or (), layout.folded[k] or ()
        return tuple(_is_viewed(x, shape, folded) for x in arrays)

    memory = {}
    for field in rule.stacked:
        viewed = tuple(tuple(flags(k, field) for k in ks) for ks in layout.stacks)
        tree = _column(leaves, rows, field)
        memory[field] = Stacked.of(replace(layout, viewed=viewed), tree)
    return {field: _placed(rule, leaves, x) for field, x in memory.items()}


def _placed(rule: Rule, leaves: Leaves, x: Stacked) -> Stacked:
    """Stacks that are sharded over the devices that compute them, or replicated."""
    axes = () if rule.matrix is None else rule.matrix.reshard
    first = lambda s: leaves.arrays[x.layout.stacks[s][0]]

    def put(s: int, y: Array) -> Array:
        p = first(s)
        return sharded_near(p, y, axes, 0) if axes else replicated_near(p, y)

    pairs = enumerate(x.stacks)
    stacks = [jax.tree.map(lambda y, s=s: put(s, y), stack) for s, stack in pairs]
    return replace(x, stacks=tuple(stacks))


def _unsharded(rule: Rule) -> Rule:
    """The rule without `reshard`: in a stack, memory is not sharded along a side."""
    assert rule.matrix is not None
    return replace(rule, matrix=rule.matrix._replace(reshard=()))


def _structs(leaves: Leaves) -> Leaves:
    """The shapes of the leaves, on no mesh."""
    struct = lambda x: None if x is None else jax.ShapeDtypeStruct(x.shape, x.dtype)
    return Leaves(leaves.like(map(struct, leaves.arrays)), leaves.name)


def _rows(
    rule: Rule, storage: LowBits | None, leaves: Leaves, fields: Collection[str]
) -> list[Row | None]:
    """The initial memory of each leaf."""
    if storage is None:
        return [None if p is None else rule.begin(p, fields) for p in leaves.arrays]
    stored = storage.begin(rule, leaves, fields)
    return [None if x is None else x.memory for x in stored]


def _column(leaves: Leaves, rows: Sequence[Row | None], field: str) -> PyTree:
    return leaves.like([None if row is None else row[field] for row in rows])
