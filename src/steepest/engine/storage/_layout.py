"""Many small arrays, stored in a few vectors.

On a GPU, launching a kernel for ten numbers takes as long as adding a million. Arrays
that share a vector share the launch.
"""

from collections.abc import Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import PyTree

from ...core import Params
from ...numerics import wide_dtype
from ..leaves import Leaves, MaskedNode, Stacked


@dataclass(frozen=True, eq=False)
class Layout:
    """Which leaves of a tree are stored in which vector, one after the other."""

    treedef: Any  # of the tree; `None` counts as a leaf
    shapes: tuple[tuple[int, ...] | None, ...]  # of its leaves
    vectors: tuple[tuple[int, ...], ...]  # for each vector, the indices of its leaves
    whole: tuple[int, ...]  # the indices of the leaves that are not packed

    @cached_property
    def _hash(self) -> int:
        return hash((self.treedef, self.shapes, self.vectors))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other or not isinstance(other, Layout):
            return self is other
        mine = self._hash, self.vectors, self.shapes, self.treedef
        return mine == (other._hash, other.vectors, other.shapes, other.treedef)

    @cached_property
    def leaves(self) -> Leaves:
        """The shapes of the leaves, in the structure of the tree."""
        struct = lambda shape: jax.ShapeDtypeStruct(shape, float)
        shapes = [None if shape is None else struct(shape) for shape in self.shapes]
        return Leaves(self.treedef.unflatten(shapes), "packed params")

    def pack(self, name: str, tree: Params, tree_name: str) -> "Packed":
        """Pack a tree of this structure. A packed tree is returned unchanged.

        Args:
            name: name used in error messages.
            tree: one array for each leaf, in any dtype.
            tree_name: the name of the tree in error messages.
        """
        if isinstance(tree, Packed):
            return tree
        advice = "Pass trees like the params that were packed."
        arrays = self.leaves.match(name, tree, tree_name, advice)
        for k in (k for row in self.vectors for k in row):
            shape = getattr(arrays[k], "shape", None)
            if shape != self.shapes[k] and not isinstance(arrays[k], MaskedNode):
                has = "nothing" if shape is None else f"shape {shape}"
                raise ValueError(
                    f"{name}: leaf {self.leaves.path(k)} has {has} in the {tree_name}, "
                    f"expected the packed shape {self.shapes[k]}. {advice}"
                )
        return Packed(
            tuple(_joined([arrays[k] for k in row]) for row in self.vectors),
            tuple(arrays[k] for k in self.whole),
            self,
        )

    def unpack(self, packed: "Packed") -> Params:
        """The tree that was packed."""
        arrays: list[PyTree] = [None] * len(self.shapes)
        for k, x in zip(self.whole, packed.whole, strict=True):
            arrays[k] = x
        for vector, row in zip(packed.vectors, self.vectors, strict=True):
            shapes = [self.shapes[k] or () for k in row]
            for k, x in zip(row, _parted(vector, shapes), strict=True):
                arrays[k] = x
        return self.treedef.unflatten(arrays)


@jax.tree_util.register_pytree_with_keys_class
@dataclass(frozen=True, eq=False)
class Packed:
    """A tree whose small leaves are stored in a few vectors. It is a JAX pytree."""

    vectors: tuple[PyTree, ...]
    whole: tuple[PyTree, ...]  # the other leaves
    layout: Layout

    def tree_flatten_with_keys(
        self,
    ) -> tuple[tuple[tuple[object, PyTree], ...], Layout]:
        """For JAX: the children by name, and the layout."""
        key = jax.tree_util.GetAttrKey
        children = (key("vectors"), self.vectors), (key("whole"), self.whole)
        return children, self.layout

    @classmethod
    def tree_unflatten(cls, layout: Layout, children: Iterable[PyTree]) -> "Packed":
        """For JAX: the tree with these children."""
        vectors, whole = children
        return cls(vectors, whole, layout)


def layout_of(leaves: Leaves, kinds: Sequence[Hashable]) -> Layout:
    """A layout with one vector for each kind of leaf.

    Args:
        leaves: a flattened tree.
        kinds: the kind of each leaf; `None` to leave a leaf unpacked. A leaf that is
            the only one of its kind stays unpacked, too.
    """
    rows: dict[Hashable, list[int]] = {}
    for k, kind in enumerate(kinds):
        if kind is not None:
            rows.setdefault(kind, []).append(k)
    vectors = tuple(tuple(row) for row in rows.values() if len(row) > 1)
    packed = {k for row in vectors for k in row}
    return Layout(
        leaves.treedef,
        tuple(None if x is None else tuple(x.shape) for x in leaves.arrays),
        vectors,
        tuple(k for k in range(len(leaves.arrays)) if k not in packed),
    )


def unpack(tree: PyTree) -> PyTree:
    """Undo `pack`, everywhere in a tree.

    Use it on packed params in the loss, and on a packed state to inspect it, or to save
    it in the form it has without packing. Memory that `reshard` keeps in stacks of
    matrices becomes that of each matrix.

    Args:
        tree: packed params, a state, or any other tree, which is returned unchanged.
    """

    return unpack_but(frozenset(), tree)


def unpack_but(kept: Collection[Hashable], tree: PyTree) -> PyTree:
    """`unpack`, except that memory in some layouts stays as it is.

    Args:
        kept: the layouts.
        tree: a state, or any other tree.
    """

    def one(x: Any) -> PyTree:
        if not is_joined(x) or x.layout in kept:
            return x
        return x.plain if isinstance(x, Stacked) else x.layout.unpack(x)

    return jax.tree.map(one, tree, is_leaf=is_joined)


def layouts_in(tree: PyTree) -> set[Hashable]:
    """The layouts of all parts of a state that keep several leaves in one array.

    Args:
        tree: a state.
    """
    parts = jax.tree.leaves(tree, is_leaf=is_joined)
    return {x.layout for x in parts if is_joined(x)}


def repack(like: PyTree, tree: PyTree) -> PyTree:
    """Undo `unpack`: pack `tree` in the way `like` is packed.

    Args:
        like: packed params, or a state, such as `tx.init(params)`. Only its structure
            is used.
        tree: the same without packing, from `unpack` or from a file.
    """
    flat, treedef = jax.tree.flatten(like, is_leaf=is_joined)
    try:
        parts = treedef.flatten_up_to(tree)
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(
            "repack: `tree` has another structure than `like`, expected the structure "
            f"of `unpack(like)`: {error}"
        ) from None

    def one(x: Any, part: PyTree) -> PyTree:
        if isinstance(x, Stacked):
            same = isinstance(part, Stacked)
            return part if same else Stacked.of(x.layout, part)
        return x.layout.pack("repack", part, "tree") if isinstance(x, Packed) else part

    return treedef.unflatten(one(*row) for row in zip(flat, parts, strict=True))


def is_joined(x: object) -> bool:
    """Whether `x` is a part of a state that keeps several leaves in one array."""
    return isinstance(x, Packed | Stacked)


def _joined(arrays: Sequence[PyTree]) -> PyTree:
    """Arrays, or shapes of arrays, as one vector. `None` and holes stay themselves."""
    first = arrays[0]
    if first is None or isinstance(first, MaskedNode):
        return first
    dtypes = {x.dtype for x in arrays}
    dtype = dtypes.pop() if len(dtypes) == 1 else wide_dtype(arrays)
    if all(isinstance(x, jax.ShapeDtypeStruct) for x in arrays):
        return jax.ShapeDtypeStruct((sum(x.size for x in arrays),), dtype)
    return jnp.concatenate([jnp.ravel(x).astype(dtype) for x in arrays])


def _parted(vector: PyTree, shapes: Sequence[tuple[int, ...]]) -> list[PyTree]:
    """Split a vector into arrays. The derivative of a split is one concatenation."""
    if vector is None or isinstance(vector, MaskedNode):
        return [vector] * len(shapes)
    if isinstance(vector, jax.ShapeDtypeStruct):
        return [jax.ShapeDtypeStruct(shape, vector.dtype) for shape in shapes]
    parts = jax.lax.split(jnp.asarray(vector), [prod(shape) for shape in shapes])
    return [part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)]
