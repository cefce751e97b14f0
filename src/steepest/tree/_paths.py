"""Where a leaf stands in a tree, in words."""

from typing import Any

import jax


def leaf_paths(tree: Any) -> list[str]:
    """The path of every leaf as Python writes it, `None` counted as a leaf.

    Args:
        tree: any pytree.

    >>> leaf_paths({"mlp": [1.0, None]})
    ["['mlp'][0]", "['mlp'][1]"]
    """
    rows, _ = jax.tree_util.tree_flatten_with_path(tree, is_leaf=lambda x: x is None)
    return [jax.tree_util.keystr(path) or "(the tree itself)" for path, _ in rows]


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
    kinds = jax.tree.structure(tree), jax.tree.structure(other)
    return f"the {names[0]} are {kinds[0]} and the {names[1]} are {kinds[1]}"
