"""Get and set values in a state by name.

    lr = get(state, "learning_rate")
    state = set(state, learning_rate=0.1)

A name is a key of a dict, a field of a NamedTuple, or the class name of a NamedTuple,
such as "ScaleByAdamState".
"""

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import jax
from jaxtyping import PyTree

from .. import check


@dataclass(frozen=True)
class NamedTupleKey:
    """The key of a NamedTuple field in a path."""

    tuple_name: str  # the class name
    name: str  # the field name

    def __str__(self) -> str:
        return f"{self.tuple_name}.{self.name}"


Path: TypeAlias = tuple[object, ...]  # NamedTupleKey or keys of `jax.tree_util`
Filter: TypeAlias = Callable[
    [Path, PyTree], object
]  # whether to take the value at this path


def get_all_with_path(
    tree: PyTree, key: object, filtering: Filter | None = None
) -> list[tuple[Path, PyTree]]:
    """All values with this name in a tree, with their paths.

    In the order of the tree; a value inside another one comes after it.

    Args:
        tree: a state, or any tree.
        key: the name.
        filtering: a function of the path and the value; only values for which it is
            true are returned.

    >>> get_all_with_path({"a": {"lr": 0.1}}, "lr")
    [((DictKey(key='a'), DictKey(key='lr')), 0.1)]
    """
    return _matches("get_all_with_path", tree, key, filtering)


def _matches(
    name: str, tree: PyTree, key: object, filtering: Filter | None
) -> list[tuple[Path, PyTree]]:
    if not isinstance(key, Hashable):
        raise TypeError(
            f"{name}: key is a {type(key).__name__}, expected a name: a string, or "
            "another key of a dict."
        )
    if filtering is not None:
        check.function(name, filtering=filtering)
    matches: list[tuple[Path, PyTree]] = []

    def search(path: Path, node: PyTree) -> None:
        holders = list(_holders(path, node, key))
        for at, holder in holders:
            already = bool(at) and _name(at[-1]) == (key,)
            if _class_name(holder) == (key,) and not already:
                matches.append((at, holder))
            rows = _children(holder)
            matches.extend(((*at, k), x) for k, x in rows if _name(k) == (key,))
        for at, holder in holders:
            for step, child in _in_own_order(holder):
                search((*at, step), child)

    search((), tree)
    if filtering is None:
        return matches
    return [(path, value) for path, value in matches if filtering(path, value)]


def get(
    tree: PyTree, key: object, default: PyTree = None, filtering: Filter | None = None
) -> PyTree:
    """The value with this name in a tree; an error if there are several.

    Args:
        tree: a state, or any tree.
        key: the name.
        default: returned if nothing has this name.
        filtering: a function of the path and the value; only values for which it is
            true are considered.
    """
    matches = _matches("get", tree, key, filtering)
    if len(matches) > 1:
        raise KeyError(
            f"get: Found multiple values for {key!r}: at {_places(matches)}. Choose "
            "one with `filtering`, or take all with `get_all_with_path`."
        )
    return matches[0][1] if matches else default


def set(tree: PyTree, filtering: Filter | None = None, /, **kwargs: PyTree) -> PyTree:
    """Replace all values with these names in a tree; an error if there are none.

    Args:
        tree: a state, or any tree.
        filtering: a function of the path and the value; only values for which it is
            true are replaced.
        kwargs: the new values, by name.

    >>> set({"lr": 0.1, "inner": {"lr": 0.1}}, lr=0.2)
    {'inner': {'lr': 0.2}, 'lr': 0.2}
    """
    for key in kwargs:
        if not _matches("set", tree, key, filtering):
            filtered = "" if filtering is None else " given the filtering operation"
            raise KeyError(
                f"set: Found no values matching {key!r}{filtered} in a tree with "
                f"{_names(tree)}. `set` only replaces existing values."
            )

    def replaced(path: Path, node: PyTree) -> PyTree:
        named = (*(_name(path[-1]) if path else ()), *_class_name(node))
        for key in named:
            if key in kwargs and (filtering is None or filtering(path, node)):
                return kwargs[key]
        rows = [replaced((*path, step), child) for step, child in _children(node)]
        return _one_level(node).unflatten(rows) if rows else node

    return replaced((), tree)


def _children(node: PyTree) -> Iterator[tuple[Any, PyTree]]:
    """The children of a node, with their keys."""
    rows, _ = jax.tree_util.tree_flatten_with_path(
        node, is_leaf=lambda x: x is not node
    )
    for path, child in rows:
        if not path:  # a leaf: its only row is itself
            return
        step = path[0]
        if _class_name(node):
            step = NamedTupleKey(type(node).__name__, step.name)
        yield step, child


def _holders(path: Path, node: PyTree, key: object) -> Iterator[tuple[Path, PyTree]]:
    """The outermost nodes that have this name, or have a child with it."""
    rows = list(_children(node))
    if _class_name(node) == (key,) or any(_name(step) == (key,) for step, _ in rows):
        yield path, node
        return
    for step, child in rows:
        yield from _holders((*path, step), child, key)


def _in_own_order(node: PyTree) -> list[tuple[Any, PyTree]]:
    """The children; those of a dict in insertion order, where JAX sorts them."""
    rows = list(_children(node))
    if isinstance(node, dict):
        places = {key: k for k, key in enumerate(node)}
        rows.sort(key=lambda row: places[row[0].key])
    return rows


def _one_level(node: PyTree) -> Any:
    return jax.tree.structure(node, is_leaf=lambda x: x is not node)


def _name(step: Any) -> tuple[Any, ...]:
    """The name of a key, if it has one: list indices have none."""
    if isinstance(step, NamedTupleKey):
        return (step.name,)
    return (step.key,) if isinstance(step, jax.tree_util.DictKey) else ()


def _class_name(node: PyTree) -> tuple[str, ...]:
    """The class name of a NamedTuple; empty for other nodes."""
    named = isinstance(node, tuple) and hasattr(node, "_fields")
    return (type(node).__name__,) if named else ()


def _places(matches: list[tuple[Path, PyTree]]) -> str:
    return ", ".join(jax.tree_util.keystr(path) or "the root" for path, _ in matches)


def names_in(tree: PyTree) -> list[Hashable]:
    """All names in a tree: keys of dicts, fields and class names of NamedTuples.

    Args:
        tree: a state, or any tree.

    >>> names_in({"inner": {"lr": 0.1}})
    ['inner', 'lr']
    """
    names: dict[Hashable, None] = {}
    queue: list[tuple[Any, PyTree]] = [(None, tree)]
    for step, node in queue:
        for name in _name(step):
            names[name] = None
        queue.extend(_children(node))
    return list(names)


def _names(tree: PyTree) -> str:
    """All names in a tree, for error messages."""
    names = names_in(tree)
    return "the names " + ", ".join(map(repr, names)) if names else "no names"
