"""The memory of matrices of equal shape, kept as one stack.

With `reshard`, each device computes some of the matrices. Their memory is kept in
stacks that are sharded over these devices, so that each device has the memory of its
own matrices, and none of it is sent in a step.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
from jax.core import Tracer
from jax.sharding import AxisType, NamedSharding, PartitionSpec, reshard
from jaxtyping import Array, PyTree

from ._dtypes import decoded, encoded_like

Shape = tuple[int, ...]


@dataclass(frozen=True)
class StackLayout:
    """Which leaves of a tree share a stack, and in which order.

    A leaf is one matrix or several. All matrices of a stack are numbered in the order
    of the leaves, and dealt to the devices in turn: for 2 devices, the stack has the
    matrices 0, 2, 4, ... of the first, and then 1, 3, 5, ... of the second. So matrices
    that follow each other are on different devices. Copies of the first matrix fill the
    stack, so that each device has the same number.
    """

    treedef: Any  # of the tree; `None` counts as a leaf
    shapes: tuple[Shape | None, ...]  # of the leaves
    folded: tuple[Shape | None, ...]  # the same as stacks of matrices: (*stack, m, n)
    stacks: tuple[tuple[int, ...], ...]  # for each stack, the indices of its leaves
    devices: int  # the number of devices that share each stack
    # For each stack, leaf, and array: whether the array has the shape of the leaf, and
    # the leaf has more axes than its stack of matrices.
    viewed: tuple[tuple[tuple[bool, ...], ...], ...] = ()

    @property
    def whole(self) -> list[int]:
        """The leaves that are in no stack."""
        stacked = {k for stack in self.stacks for k in stack}
        return [k for k in range(len(self.shapes)) if k not in stacked]

    def counts(self, s: int) -> list[int]:
        """For each leaf of stack `s`, its number of matrices."""
        return [prod((self.folded[k] or ())[:-2]) for k in self.stacks[s]]

    def join(self, s: int, values: Sequence[PyTree]) -> PyTree:
        """Stack `s` of the memory of its leaves.

        Args:
            s: the index of the stack.
            values: the memory of each leaf: arrays, or their shapes.
        """
        if any(isinstance(x, jax.ShapeDtypeStruct) for x in jax.tree.leaves(values)):
            return jax.eval_shape(lambda values: self._join(s, values), list(values))
        return self._join(s, values)

    def _join(self, s: int, values: Sequence[PyTree]) -> PyTree:
        counts = self.counts(s)

        def matrices(k: int, count: int, flags: Sequence[bool], tree: PyTree) -> PyTree:
            arrays, treedef = jax.tree.flatten(_ready(tree))
            shape = self.folded[k] or ()
            return treedef.unflatten(
                x.reshape(count, *(shape[-2:] if view else x.shape[len(shape) - 2 :]))
                for x, view in zip(arrays, flags, strict=True)
            )

        rows = zip(self.stacks[s], counts, self.viewed[s], values, strict=True)
        join = lambda *xs: dealt(jnp.concatenate(xs), self.devices)
        joined = jax.tree.map(join, *(matrices(*row) for row in rows))
        return encoded_like(values[0], joined)

    def split(self, s: int, stack: PyTree) -> list[PyTree]:
        """Undo `join`.

        Args:
            s: the index of the stack.
            stack: the stack: arrays, or their shapes.
        """
        if any(isinstance(x, jax.ShapeDtypeStruct) for x in jax.tree.leaves(stack)):
            return jax.eval_shape(lambda stack: self._split(s, stack), stack)
        return self._split(s, stack)

    def _split(self, s: int, stack: PyTree) -> list[PyTree]:
        counts, values, start = self.counts(s), [], 0
        arrays, treedef = jax.tree.flatten(_ready(stack))
        arrays = [collected(_replicated(x), self.devices, sum(counts)) for x in arrays]
        for k, count, flags in zip(self.stacks[s], counts, self.viewed[s], strict=True):
            outer = (self.folded[k] or ())[:-2]
            mine = [
                x[start : start + count].reshape(
                    (self.shapes[k] or ()) if view else (*outer, *x.shape[1:])
                )
                for x, view in zip(arrays, flags, strict=True)
            ]
            values.append(encoded_like(stack, treedef.unflatten(mine)))
            start += count
        return values


@jax.tree_util.register_pytree_with_keys_class
@dataclass(frozen=True, eq=False)
class Stacked:
    """A tree of memory whose matrices of equal shape are stacks. It is a JAX pytree.

    `unpack` turns it into a tree like the params.
    """

    stacks: tuple[PyTree, ...]
    whole: tuple[PyTree, ...]  # the memory of the other leaves
    layout: StackLayout

    def tree_flatten_with_keys(
        self,
    ) -> tuple[tuple[tuple[object, PyTree], ...], StackLayout]:
        """For JAX: the children by name, and the layout."""
        key = jax.tree_util.GetAttrKey
        children = (key("stacks"), self.stacks), (key("whole"), self.whole)
        return children, self.layout

    @classmethod
    def tree_unflatten(
        cls, layout: StackLayout, children: Sequence[PyTree]
    ) -> "Stacked":
        """For JAX: the tree with these children."""
        stacks, whole = children
        return cls(stacks, whole, layout)

    @classmethod
    def of(cls, layout: StackLayout, tree: PyTree) -> "Stacked":
        """The memory in this layout.

        Args:
            layout: the layout.
            tree: the memory of each leaf, in the structure of the params.
        """
        values = layout.treedef.flatten_up_to(tree)
        return cls(
            tuple(
                layout.join(s, [values[k] for k in stack])
                for s, stack in enumerate(layout.stacks)
            ),
            tuple(values[k] for k in layout.whole),
            layout,
        )

    @property
    def by_path(self) -> list[tuple[Any, PyTree]]:
        """The memory of the leaves that are in no stack, each with its path."""
        numbers = self.layout.treedef.unflatten(range(len(self.layout.shapes)))
        paths = [path for path, _ in jax.tree_util.tree_leaves_with_path(numbers)]
        pairs = zip(self.layout.whole, self.whole, strict=True)
        return [(paths[k], x) for k, x in pairs]

    @property
    def plain(self) -> PyTree:
        """The memory of each leaf, in the structure of the params."""
        split = [self.layout.split(s, x) for s, x in enumerate(self.stacks)]
        return self._tree(split)

    @property
    def spread(self) -> PyTree:
        """Like `plain`, but each leaf has the arrays of its whole stack."""
        pairs = zip(self.stacks, self.layout.stacks, strict=True)
        return self._tree([[x] * len(stack) for x, stack in pairs])

    def _tree(self, split: Sequence[Sequence[PyTree]]) -> PyTree:
        values: dict[int, PyTree] = dict(_pairs(self.layout.stacks, split))
        values |= dict(zip(self.layout.whole, self.whole, strict=True))
        return self.layout.treedef.unflatten(
            values[k] for k in range(len(self.layout.shapes))
        )


def unstacked(tree: PyTree, *, whole: bool = False) -> PyTree:
    """A state in which the memory of each leaf is separate.

    Args:
        tree: a state, its shapes, or a tree of the same structure.
        whole: whether each leaf gets what its whole stack has, such as a sharding.
    """
    is_stacked = lambda x: isinstance(x, Stacked)
    one = lambda x: (x.spread if whole else x.plain) if is_stacked(x) else x
    return jax.tree.map(one, tree, is_leaf=is_stacked)


def _pairs(
    stacks: Sequence[Sequence[int]], split: Sequence[Sequence[PyTree]]
) -> Iterator[tuple[int, PyTree]]:
    for stack, values in zip(stacks, split, strict=True):
        yield from zip(stack, values, strict=True)


def dealt(x: Array, devices: int) -> Array:
    """Matrices in the order of a stack: those of the first device, then of the next.

    Args:
        x: the matrices, along the first axis.
        devices: the number of devices. Copies of the first matrix make each device have
            the same number.
    """
    each = -(-len(x) // devices)
    more = each * devices - len(x)
    if more:
        x = jnp.concatenate([x, jnp.broadcast_to(x[:1], (more, *x.shape[1:]))])
    return _turned(x, each, devices)


def collected(x: Array, devices: int, many: int) -> Array:
    """Undo `dealt`.

    Args:
        x: a stack.
        devices: the number of devices.
        many: the number of matrices, without copies.
    """
    return _turned(x, devices, len(x) // devices)[:many]


def _ready(tree: PyTree) -> PyTree:
    """Memory as arrays of JAX, and decoded, if it is stored in few bits."""
    return decoded(jax.tree.map(jnp.asarray, tree))


def _replicated(x: Array) -> Array:
    """`x` on every device, if its mesh has explicit axes: there JAX cannot split it."""
    where = jax.typeof(x).sharding
    if AxisType.Explicit not in where.mesh.axis_types:
        return x
    whole = PartitionSpec()
    if isinstance(x, Tracer):
        return reshard(x, NamedSharding(where.mesh, whole))
    mesh: Any = getattr(x.sharding, "mesh", None)
    return jax.device_put(x, NamedSharding(mesh, whole))


def _turned(x: Array, rows: int, columns: int) -> Array:
    """The members of a stack, as if `rows` lines of `columns` were transposed."""
    if rows == 1 or columns == 1:
        return x
    return x.reshape(rows, columns, *x.shape[1:]).swapaxes(0, 1).reshape(x.shape)
