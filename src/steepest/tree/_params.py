"""Find the parts of a state that have the structure of the params.

The `init` of a transformation is called with a placeholder for the params. Wherever
the placeholder appears in the state, the params would be.
"""

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import jax
from jaxtyping import PyTree

from .. import check
from ..core import not_a_transformation
from ._map import map_trees

IsLeaf = Callable[[object], bool]


@jax.tree_util.register_pytree_node_class
class Placeholder:
    """Stands for the params or one of their leaves: a tree without leaves."""

    def __init__(self, k: int):
        self.k = k  # which leaf

    def tree_flatten(self) -> tuple[tuple[()], int]:
        return (), self.k

    @classmethod
    def tree_unflatten(cls, k: int, children: object) -> "Placeholder":
        del children
        return cls(k)


def map_params(
    initable: object,
    f: Callable[..., object],
    state: PyTree,
    /,
    *rest: PyTree,
    transform_non_params: Callable[..., object] | None = None,
    is_leaf: IsLeaf | None = None,
) -> PyTree:
    """Apply `f` to the leaves of a state that belong to params, such as Adam's moments.

    `None` and masked leaves are left unchanged.

    Args:
        initable: the transformation that made the state, or its `init`.
        f: a function of a leaf of the state, and of the leaves of `rest` for the same
            param.
        state: the state.
        rest: trees like the params.
        transform_non_params: a function of the other leaves, such as counts; by
            default they are left unchanged.
        is_leaf: whether a node is a leaf, for the parts of the state like the params.

    >>> import jax.numpy as jnp, steepest
    >>> tx = steepest.adam(0.1)
    >>> state = tx.init({"w": jnp.ones(2)})
    >>> map_params(tx, lambda x, name: name, state, {"w": "the w"})[0].mu
    {'w': 'the w'}
    """
    init = getattr(initable, "init", initable)
    if not callable(init):
        raise not_a_transformation("map_params", "initable", initable)
    check.function("map_params", f=f)
    others = {"transform_non_params": transform_non_params, "is_leaf": is_leaf}
    check.function("map_params", **{k: g for k, g in others.items() if g is not None})
    structure, marked = _marked(init, state, rest, is_leaf)
    columns = [structure.flatten_up_to(tree) for tree in rest]

    def param(x: PyTree, *others: PyTree) -> object:
        stays = _is_hole(x) and not (is_leaf and is_leaf(x))
        return x if stays else f(x, *others)

    def part(mark: object, value: PyTree) -> object:
        if isinstance(mark, Placeholder):
            others = {f"rest[{i}]": x[mark.k] for i, x in enumerate(columns)}
            ends = _ends(is_leaf)
            return map_trees("map_params", param, is_leaf=ends, state=value, **others)
        return value if transform_non_params is None else transform_non_params(value)

    marks, treedef = jax.tree.flatten(marked, is_leaf=_is_placeholder)
    try:
        parts = treedef.flatten_up_to(state)
    except (KeyError, TypeError, ValueError):
        raise ValueError(
            f"map_params: the state is {jax.tree.structure(state)}, expected one like "
            f"{treedef}. Pass a state made by `initable`."
        ) from None
    return treedef.unflatten(map(part, marks, parts))


def _marked(
    init: Callable[[PyTree], PyTree],
    state: PyTree,
    rest: tuple[PyTree, ...],
    is_leaf: IsLeaf | None,
) -> tuple[Any, PyTree]:
    """A structure of the params, and the state `init` makes of placeholders in it.

    For most, one placeholder for all of the params is enough. An `init` that looks into
    the params, to mask or select some of them, fails with it. Then the structures that
    the params may have are tried: those of `rest`, and those of parts of the state.
    """
    whole = jax.tree.structure(0)
    with warnings.catch_warnings():
        # `lookahead` warns if the params are not a pair of fast and slow params.
        warnings.simplefilter("ignore")
        try:
            return whole, init(whole.unflatten([Placeholder(0)]))
        except Exception as error:
            if not jax.tree.leaves(state):
                return whole, state  # there is no leaf that could belong to a param
            for tree in (*rest, *_parts(state)):
                structure = jax.tree.structure(tree, is_leaf=_ends(is_leaf))
                marked = _tried(init, structure, state)
                if marked is not None:
                    return structure, marked
            raise error


def _tried(
    init: Callable[[PyTree], PyTree], structure: Any, state: PyTree
) -> PyTree | None:
    """The state `init` makes of placeholders, if it contains them and fits `state`."""
    stand_in = structure.unflatten(map(Placeholder, range(structure.num_leaves)))
    try:
        marked = init(stand_in)
        marks, treedef = jax.tree.flatten(marked, is_leaf=_is_placeholder)
        treedef.flatten_up_to(state)
    except Exception:  # an `init` may raise anything for an unknown structure
        return None
    return marked if any(map(_is_placeholder, marks)) else None


def _parts(tree: PyTree) -> Iterator[PyTree]:
    """The tree, its children, their children, and so on."""
    queue = [tree]
    for node in queue:
        yield node
        below = jax.tree.leaves(node, is_leaf=lambda x, node=node: x is not node)
        queue.extend(x for x in below if x is not node and not _is_hole(x))


def _ends(is_leaf: IsLeaf | None) -> IsLeaf:
    """Leaves of a part like the params: holes, and what the user calls a leaf."""
    return lambda x: _is_hole(x) or (is_leaf is not None and is_leaf(x))


def _is_placeholder(x: object) -> bool:
    return isinstance(x, Placeholder)


def _is_hole(x: object) -> bool:
    """Whether `x` is `None` or a `MaskedNode`, ours or Optax's."""
    return x is None or (isinstance(x, tuple) and type(x).__name__ == "MaskedNode")
