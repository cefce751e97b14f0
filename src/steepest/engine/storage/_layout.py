"""Many small arrays in few vectors.

A device with thousands of cores takes as long to begin with an array of ten numbers as
to add a million. In one vector they begin once.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import jax
import jax.numpy as jnp

from ...core import Params
from ...numerics import wide_dtype
from ..leaves import Leaves, MaskedNode


@dataclass(frozen=True, eq=False)
class Layout:
    """Which leaves of a tree lie in which vector, one after the other."""

    treedef: Any  # of the tree, a `None` in it being a leaf
    shapes: tuple[tuple[int, ...] | None, ...]  # of its leaves
    vectors: tuple[tuple[int, ...], ...]  # for each vector, the leaves that lie in it
    whole: tuple[int, ...]  # the leaves that stay as they are

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

    def pack(self, who: str, tree: Params, name: str) -> "Packed":
        """A tree of this structure, packed; a packed one as it is.

        Args:
            who: who speaks in an error.
            tree: one array for each leaf, in any dtype.
            name: what the tree is called in an error.
        """
        if isinstance(tree, Packed):
            return tree
        advice = "Pass trees like the params that were packed."
        found = self.leaves.match(who, tree, name, advice)
        for k in (k for row in self.vectors for k in row):
            shape = getattr(found[k], "shape", None)
            if shape != self.shapes[k] and not isinstance(found[k], MaskedNode):
                has = "nothing" if shape is None else f"shape {shape}"
                raise ValueError(
                    f"{who}: leaf {self.leaves.path(k)} has {has} in the {name} and "
                    f"lies with shape {self.shapes[k]} in a vector. {advice}"
                )
        return Packed(
            tuple(_joined([found[k] for k in row]) for row in self.vectors),
            tuple(found[k] for k in self.whole),
            self,
        )

    def unpack(self, packed: "Packed") -> Params:
        """The tree again."""
        found: list[Any] = [None] * len(self.shapes)
        for k, x in zip(self.whole, packed.whole, strict=True):
            found[k] = x
        for vector, row in zip(packed.vectors, self.vectors, strict=True):
            shapes = [self.shapes[k] or () for k in row]
            for k, x in zip(row, _parted(vector, shapes), strict=True):
                found[k] = x
        return self.treedef.unflatten(found)


@jax.tree_util.register_pytree_with_keys_class
@dataclass(frozen=True, eq=False)
class Packed:
    """A tree whose small leaves lie in few vectors; itself a tree of those."""

    vectors: tuple[Any, ...]
    whole: tuple[Any, ...]  # the other leaves
    layout: Layout

    def tree_flatten_with_keys(self) -> tuple[Any, Layout]:
        """For JAX: the children by name, and the layout."""
        key = jax.tree_util.GetAttrKey
        children = (key("vectors"), self.vectors), (key("whole"), self.whole)
        return children, self.layout

    @classmethod
    def tree_unflatten(cls, layout: Layout, children: Any) -> "Packed":
        """For JAX: back from the children."""
        vectors, whole = children
        return cls(vectors, whole, layout)


def layout_of(leaves: Leaves, kinds: Sequence[Hashable]) -> Layout:
    """A layout in which leaves of one kind lie in one vector.

    Args:
        leaves: a tree taken apart.
        kinds: for each leaf, its kind; `None` for one that stays as it is. So does one
            that is the only one of its kind.
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


def unpack(tree: Any) -> Any:
    """A tree in which everything that `pack` has packed is as it was before.

    For packed params where the loss uses them, and for a packed state: to look at it,
    or to save it as if nothing had been packed.

    Args:
        tree: packed params, a state, or anything else, which stays as it is.
    """
    return jax.tree.map(
        lambda x: x.layout.unpack(x) if isinstance(x, Packed) else x,
        tree,
        is_leaf=_is_packed,
    )


def repack(like: Any, tree: Any) -> Any:
    """`tree` packed in the way `like` is: what `unpack` has undone.

    Args:
        like: packed params, or a state, such as `tx.init` makes; only its structure is
            looked at.
        tree: the same without packing, out of `unpack` or out of a file.
    """
    flat, treedef = jax.tree.flatten(like, is_leaf=_is_packed)
    try:
        parts = treedef.flatten_up_to(tree)
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(
            "repack: `tree` has another structure than `like`, expected what `unpack` "
            f"made of such a one: {error}"
        ) from None
    return treedef.unflatten(
        x.layout.pack("repack", part, "tree") if isinstance(x, Packed) else part
        for x, part in zip(flat, parts, strict=True)
    )


def _is_packed(x: Any) -> bool:
    return isinstance(x, Packed)


def _joined(arrays: Sequence[Any]) -> Any:
    """One vector of arrays, of shapes of arrays, or of nothings, which stay nothing."""
    first = arrays[0]
    if first is None or isinstance(first, MaskedNode):
        return first
    dtypes = {x.dtype for x in arrays}
    dtype = dtypes.pop() if len(dtypes) == 1 else wide_dtype(arrays)
    if all(isinstance(x, jax.ShapeDtypeStruct) for x in arrays):
        return jax.ShapeDtypeStruct((sum(x.size for x in arrays),), dtype)
    return jnp.concatenate([jnp.ravel(x).astype(dtype) for x in arrays])


def _parted(vector: Any, shapes: Sequence[tuple[int, ...]]) -> list[Any]:
    """The arrays of a vector; turned round, JAX makes one concatenation of it."""
    if vector is None or isinstance(vector, MaskedNode):
        return [vector] * len(shapes)
    if isinstance(vector, jax.ShapeDtypeStruct):
        return [jax.ShapeDtypeStruct(shape, vector.dtype) for shape in shapes]
    parts = jax.lax.split(jnp.asarray(vector), [prod(shape) for shape in shapes])
    return [part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)]
