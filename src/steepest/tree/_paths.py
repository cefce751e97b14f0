"""The paths of leaves, as text."""

import sys
from collections.abc import Callable, Mapping

import jax
from jax.tree_util import KeyPath
from jaxtyping import PyTree

Keys = tuple[str, ...]


def leaf_paths(tree: PyTree) -> list[str]:
    """The path of every leaf in Python syntax; `None` counts as a leaf.

    Args:
        tree: any pytree.

    >>> leaf_paths({"mlp": [1.0, None]})
    ["['mlp'][0]", "['mlp'][1]"]
    """
    rows, _ = jax.tree_util.tree_flatten_with_path(tree, is_leaf=lambda x: x is None)
    return [jax.tree_util.keystr(path) or "(the tree itself)" for path, _ in rows]


def key_paths(tree: PyTree) -> list[str]:
    """The path of every leaf, as patterns match it; `None` is not a leaf.

    Keys are joined by `/`: names for dicts and attributes, indices for lists.

    Args:
        tree: any pytree. In Flax NNX the path of a variable is that of its array.

    >>> key_paths({"mlp": [{"kernel": 1.0}, None]})
    ['mlp/0/kernel']
    """
    rows = jax.tree_util.tree_leaves_with_path(tree, is_leaf=_is_variable)
    paths: list[KeyPath] = []
    for path, x in rows:
        if _is_variable(x):  # without the key `value`, as in the pure arrays
            inside = jax.tree_util.tree_leaves_with_path(x)
            paths += [(*path, *below[1:]) for below, _ in inside]
        else:
            paths.append(path)
    return ["/".join(_keys(path)) for path in paths]


def owner_of(path: KeyPath, owners: Mapping[KeyPath, int]) -> int | None:
    """The leaf whose path is part of this one: the longest match, then the last.

    So it finds the param that an array of a state belongs to.

    Args:
        path: a path, such as that of an array in a state.
        owners: the number of each leaf, by path.
    """
    size = len(path)
    for long in range(size, -1, -1):
        for start in range(size - long, -1, -1):
            owner = owners.get(path[start : start + long])
            if owner is not None:
                return owner
    return None


def _is_variable(x: object) -> bool:
    """Whether `x` is a variable of Flax NNX, which is not imported for this."""
    nnx = sys.modules.get("flax.nnx")
    return nnx is not None and isinstance(x, nnx.Variable)


def values_by_keys(
    tree: PyTree, other: PyTree, is_leaf: Callable[[object], bool]
) -> list[PyTree] | None:
    """The value in `other` for each leaf of `tree`, matched by keys alone.

    So a dict matches a `FrozenDict`, a module or a state with the same names, and a
    list matches a tuple. Returns `None` if a leaf of `tree` has no value, or a value
    belongs to no leaf.

    Args:
        tree: any pytree.
        other: a tree with the same keys; one leaf may hold for a whole subtree.
        is_leaf: which nodes count as leaves: `None`, and placeholders for something
            that was masked out. A placeholder may have a subtree in `other`, and is
            left out of the result.
    """
    by_keys = {_keys(path): x for path, x in _with_keys(other, is_leaf)}
    unused = {keys for keys, x in by_keys.items() if not is_leaf(x)}
    values = []
    for path, x in _with_keys(tree, is_leaf):
        keys = _keys(path)
        above = [keys[:n] for n in range(len(keys) + 1) if keys[:n] in by_keys]
        unused -= set(above)
        if is_leaf(x) and x is not None:
            unused -= {below for below in unused if below[: len(keys)] == keys}
        elif above or x is None:
            values.append(by_keys[above[0]] if above else None)
        else:
            return None
    return None if unused else values


def first_difference(tree: PyTree, other: PyTree, names: tuple[str, str]) -> str:
    """A clause that names the first difference between two structures.

    Args:
        tree: any pytree.
        other: one that should have the same structure.
        names: the names of the two trees in the clause.

    >>> first_difference({"w": 1, "b": 2}, {"w": 1}, ("updates", "params"))
    "leaf ['b'] is in the updates and not in the params"
    """
    mine, others = leaf_paths(tree), leaf_paths(other)
    for path in mine:
        if path not in others:
            return f"leaf {path} is in the {names[0]} and not in the {names[1]}"
    for path in others:
        if path not in mine:
            return f"leaf {path} is in the {names[1]} and not in the {names[0]}"
    path, *both = _parting(tree, other, ()) or ((), tree, other)
    kinds = [f"{_kind(x)} in the {name}" for x, name in zip(both, names, strict=True)]
    return f"{jax.tree_util.keystr(path) or 'the root'} is {' and '.join(kinds)}"


def _parting(
    tree: PyTree, other: PyTree, path: KeyPath
) -> tuple[KeyPath, PyTree, PyTree] | None:
    """The first place where the node types differ: its path, and the two nodes."""
    if all(jax.tree_util.all_leaves([x]) for x in (tree, other)):
        return None
    if type(tree) is not type(other):
        return path, tree, other
    for (step, mine), (_, theirs) in zip(_below(tree), _below(other), strict=False):
        parting = _parting(mine, theirs, (*path, *step))
        if parting is not None:
            return parting
    return None


def _below(node: PyTree) -> list[tuple[KeyPath, PyTree]]:
    """The children of a node, with their keys."""
    inside = lambda x: x is not node
    rows = jax.tree_util.tree_leaves_with_path(node, is_leaf=inside)
    return [row for row in rows if row[0]]


def _kind(x: object) -> str:
    if x is None:
        return "None"
    return "an array" if hasattr(x, "dtype") else f"a {type(x).__name__}"


def _with_keys(
    tree: PyTree, is_leaf: Callable[[object], bool]
) -> list[tuple[KeyPath, PyTree]]:
    return jax.tree_util.tree_leaves_with_path(tree, is_leaf=is_leaf)


def _keys(path: KeyPath) -> Keys:
    """The keys of a path, as plain names."""
    return tuple(jax.tree_util.keystr((key,), simple=True) for key in path)
