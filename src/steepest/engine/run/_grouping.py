"""Which matrices run through a matrix formula together: those of equal shape."""

from collections.abc import Hashable, Sequence
from math import prod

import jax
import numpy as np
from jax.sharding import AxisType

from ...core import names_of, Rule
from ...numerics import most_in_stack, most_kept, Team
from ..leaves import alike, Leaf
from ._formula import Row

Shape = tuple[int, ...]
AnyLeaf = Leaf | jax.ShapeDtypeStruct


def stacks(
    arrays: Sequence[AnyLeaf | None],
    kinds: Sequence[Hashable],
    shapes: Sequence[Shape] | None = None,
    team: Team | None = None,
) -> list[list[int]]:
    """The indices of the matrices in each stack.

    Args:
        arrays: each with two axes or more, or `None` to leave it out. Tall and wide
            matrices can share a stack.
        kinds: for each array, what else must be equal in a stack.
        shapes: for each array, its shape as a stack of matrices; by default its own.
        team: the devices that share each stack; by default the compiler decides.
    """
    if shapes is None:
        shapes = [() if x is None else x.shape for x in arrays]
    sizes = [0 if x is None else x.size * x.dtype.itemsize for x in arrays]  # bytes
    rows: dict[Hashable, list[int]] = {}
    for k, (x, kind, shape) in enumerate(zip(arrays, kinds, shapes, strict=True)):
        if x is not None:
            _, dtype, where = alike(x)
            explicit = AxisType.Explicit in jax.typeof(x).sharding.mesh.axis_types
            alone = explicit and team is None
            key = wide_shape(shape), dtype, where, kind, k if alone else None
            rows.setdefault(key, []).append(k)
    groups: list[list[int]] = []
    for row in rows.values():
        devices = 1 if team is None else team.size
        most = most_in_stack(max(1, *(sizes[k] for k in row)), devices)
        for part in [row] if len(row) <= most else _by_shape(row, shapes):
            count = _parts(len(part), most)
            if team is not None:  # every stack is padded to the number of devices
                count = -(-len(part) // most)
            pieces = np.array_split(part, count)
            groups += [piece.tolist() for piece in pieces]
    return groups


def stack_sizes(
    rule: Rule, leaves: Sequence[AnyLeaf | None], team: Team | None = None
) -> list[int]:
    """For each leaf, the number of matrices in its stack; 0 for `None`.

    Args:
        rule: a rule with a matrix formula.
        leaves: the params, or their shapes.
        team: the devices that share each stack; `None` if they are not known.
    """
    matrix = rule.matrix
    assert matrix is not None
    asked = names_of(matrix.formula).arrays
    shape_of = lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype)
    arrays = [None if x is None else shape_of(x) for x in leaves]
    shapes = [() if x is None else folded_shape(rule, x.shape) for x in arrays]

    def kind(x: AnyLeaf | None, shape: Shape) -> Hashable:
        if x is None:
            return None
        row = jax.eval_shape(rule.begin, x).values()
        pairs = zip(rule.memory_names, row, strict=True)
        mine = tuple(y for name, y in pairs if name in asked)
        return memory_kind(shape, mine)

    kinds = [kind(x, shape) for x, shape in zip(arrays, shapes, strict=True)]
    sizes = [0] * len(arrays)
    for group in stacks(arrays, kinds, shapes, team):
        for k in group:
            sizes[k] = sum(prod(shapes[j][:-2]) for j in group)
    return sizes


def _by_shape(row: Sequence[int], of: Sequence[Shape]) -> list[list[int]]:
    """Separate tall and wide ones: to transpose a large matrix is a pass over it."""
    shapes = dict.fromkeys(of[k] for k in row)
    return [[k for k in row if of[k] == shape] for shape in shapes]


def in_pieces(ks: Sequence[int], size: int) -> list[list[int]]:
    """Leaves of matrices of equal shape, divided into stacks in which memory is kept.

    Args:
        ks: the leaves.
        size: the bytes of the largest.
    """
    pieces = np.array_split(ks, _parts(len(ks), most_kept(size)))
    return [piece.tolist() for piece in pieces]


def _parts(n: int, most: int) -> int:
    """The number of stacks for `n` matrices.

    Up to twice the least possible number, if that makes the stacks equally large.
    """
    least = -(-n // most)
    return next((k for k in range(least, min(2 * least, n) + 1) if n % k == 0), least)


def folded_shape(rule: Rule, shape: Shape) -> Shape:
    """The shape of a leaf as a stack of matrices."""
    fold = None if rule.matrix is None else rule.matrix.fold
    return shape if fold is None else tuple(fold(shape, **rule.asked_by(fold)))


def memory_kind(shape: Shape, row: Row) -> tuple[Hashable, ...]:
    """What two matrices must have in common for their memories to share a stack."""
    if not row:
        return ()
    arrays, treedef = jax.tree.flatten(row)
    # Rows and columns have different memory, so matrices are not transposed. Turning
    # the memory with them, and exchanging that of the sides, was tried for SOAP: it
    # compiled as long as before (JAX 0.10.2), and a matrix got other rounding errors in
    # other company. Memory of a vector has an axis less than that of a single row.
    kinds = tuple((x.ndim - len(shape), x.dtype) for x in arrays)
    return shape[-2:], treedef, kinds


def wide_shape(shape: Shape) -> tuple[int, int]:
    """The shape (m, n) of a matrix after transposing it to be wide, not tall."""
    m, n = sorted(shape[-2:])
    return m, n
