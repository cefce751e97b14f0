"""Where a leaf stands in a tree, in words."""

from collections.abc import Callable
from typing import Any

import jax

Keys = tuple[str, ...]


def leaf_paths(tree: Any) -> list[str]:
    """The path of every leaf as Python writes it, `None` counted as a leaf.

    Args:
        tree: any pytree.

    >>> leaf_paths({"mlp": [1.0, None]})
    ["['mlp'][0]", "['mlp'][1]"]
    """
    rows, _ = jax.tree_util.tree_flatten_with_path(tree, is_leaf=lambda x: x is None)
    return [jax.tree_util.keystr(path) or "(the tree itself)" for path, _ in rows]


def key_paths(tree: Any) -> list[str]:
    """The path of every leaf as one string, `None` not counted: what a pattern sees.

    Its keys are joined by `/`: of dicts and attributes the name, of lists the number.

    Args:
        tree: any pytree. In Flax's NNX an array is the `value` of a variable, and the
            path says so.

    >>> key_paths({"mlp": [{"kernel": 1.0}, None]})
    ['mlp/0/kernel']
    """
    rows = jax.tree_util.tree_leaves_with_path(tree)
    return ["/".join(_keys(path)) for path, _ in rows]


def said_of_leaves(
    tree: Any, other: Any, is_leaf: Callable[[Any], bool]
) -> list[Any] | None:
    """What `other` has for each leaf of `tree`, told by their keys alone.

    So a dict may speak of a `FrozenDict`, a module or a state with the same names, a
    list of a tuple. `None` if a leaf of `tree` is not spoken of, or one of `other`
    belongs to nothing.

    Args:
        tree: any pytree.
        other: one of the same keys; a leaf may speak of all that is below it.
        is_leaf: what is a leaf although it is a node: `None`, and what stands for
            something that was taken out. Only the latter may have more below it in
            `other`, and is left out of the result.
    """
    said = {_keys(path): x for path, x in _with_keys(other, is_leaf)}
    idle = {keys for keys, x in said.items() if not is_leaf(x)}
    found = []
    for path, x in _with_keys(tree, is_leaf):
        keys = _keys(path)
        above = [keys[:n] for n in range(len(keys) + 1) if keys[:n] in said]
        idle -= set(above)
        if is_leaf(x) and x is not None:
            idle -= {below for below in idle if below[: len(keys)] == keys}
        elif above or x is None:
            found.append(said[above[0]] if above else None)
        else:
            return None
    return None if idle else found


def first_difference(tree: Any, other: Any, names: tuple[str, str]) -> str:
    """What `other` has and `tree` has not, or the other way round, in one clause.

    Args:
        tree: any pytree.
        other: one that should have the same structure.
        names: what the two are called in the clause.

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
    said = [f"{_kind(x)} in the {name}" for x, name in zip(both, names, strict=True)]
    return f"{jax.tree_util.keystr(path) or 'the root'} is {' and '.join(said)}"


def _parting(tree: Any, other: Any, path: Any) -> tuple[Any, Any, Any] | None:
    """The first place where nodes are of two kinds: its path, and the two."""
    if all(jax.tree_util.all_leaves([x]) for x in (tree, other)):
        return None
    if type(tree) is not type(other):
        return path, tree, other
    for (step, mine), (_, theirs) in zip(_below(tree), _below(other), strict=False):
        found = _parting(mine, theirs, (*path, *step))
        if found is not None:
            return found
    return None


def _below(node: Any) -> list[tuple[Any, Any]]:
    """The children of a node, with the steps that lead there."""
    inside = lambda x: x is not node
    rows = jax.tree_util.tree_leaves_with_path(node, is_leaf=inside)
    return [row for row in rows if row[0]]


def _kind(x: Any) -> str:
    if x is None:
        return "None"
    return "an array" if hasattr(x, "dtype") else f"a {type(x).__name__}"


def _with_keys(tree: Any, is_leaf: Callable[[Any], bool]) -> list[tuple[Any, Any]]:
    return jax.tree_util.tree_leaves_with_path(tree, is_leaf=is_leaf)


def _keys(path: Any) -> Keys:
    """The keys of a path, as a person calls them."""
    return tuple(jax.tree_util.keystr((key,), simple=True) for key in path)
