"""Decide from its path and shape whether a leaf is the matrix of a hidden layer."""

from collections.abc import Mapping
from itertools import pairwise
from typing import NamedTuple

import jax
import jax.numpy as jnp

from ..core import Params, Recent
from ..tree import as_patterns, key_paths, named

ADAM = "adam"
Words = tuple[str, ...]  # for each of the last axes, "in" or "out"
PLAIN: Words = ("in", "out")  # the axes of a matrix, unless `routes` says otherwise

# 50257 x 768 is the shape of a vocabulary; 28672 x 8192 is not.
_LONG, _TIMES = 10_000, 10
TREES = 256  # number of trees to cache


class Place(NamedTuple):
    """The group of a leaf."""

    label: str  # label of the group
    decays: bool
    why: str
    what: str = ""  # what its path names, such as "a head"


class Sorting:
    """Assigns each leaf to a group."""

    def __init__(
        self, name: str, stacked: str | None, routes: Mapping[str, str] | None
    ):
        """Check the options.

        Args:
            name: the optimizer of the matrices: their label, and the name used in error
                messages.
            stacked: a pattern for leaves whose first axis indexes layers.
            routes: maps a pattern to the name, "adam", or a word for each axis.
        """
        if routes is not None and not isinstance(routes, Mapping):
            raise TypeError(
                f"{name}: routes is a {type(routes).__name__}, expected a dict, such "
                'as `{"conv": "in in in out", "adapter": "adam"}`.'
            )
        self.name = name
        self._routes = dict(routes or {})
        self._patterns = as_patterns(name, list(self._routes))
        self._stacked = as_patterns(name, [] if stacked is None else [stacked])
        self._words = [_words(name, *item) for item in self._routes.items()]
        self._known: Recent[list[Place]] = Recent(TREES)

    @property
    def sides(self) -> dict[str, Words]:
        """The words for the axes of each group of matrices, by label."""
        plain = {self.name: PLAIN}
        return plain | {self._label(words): words for words in self._words if words}

    def places(self, params: Params) -> list[Place]:
        """The group of each leaf, cached by structure and shapes."""
        leaves, treedef = jax.tree.flatten(params)
        shapes = tuple(map(jnp.shape, leaves))
        make = lambda: list(map(self._place, key_paths(params), shapes))
        try:
            return self._known((treedef, shapes), make)
        except (TypeError, ValueError):  # not hashable or comparable
            return make()

    def __call__(self, params: Params) -> Params:
        """The label of each leaf, in the structure of the params."""
        labels = [place.label for place in self.places(params)]
        return jax.tree.structure(params).unflatten(labels)

    def decaying(self, params: Params) -> Params:
        """Whether each leaf decays, in the structure of the params."""
        decays = [place.decays for place in self.places(params)]
        return jax.tree.structure(params).unflatten(decays)

    def reasons(self, params: Params) -> list[str]:
        """The reason for the group of each leaf."""
        return [place.why for place in self.places(params)]

    def _place(self, path: str, shape: tuple[int, ...]) -> Place:
        stack = 1 if any(pattern.search(path) for pattern in self._stacked) else 0
        shape = shape[stack:]
        rows = zip(self._patterns, self._words, self._routes, strict=True)
        for pattern, words, route in rows:
            if pattern.search(path) and len(shape) >= len(words):
                label = self._label(words) if words else ADAM
                return Place(label, len(shape) > 1, f"routes: {route!r}")
        name = named(path)
        if name is not None and len(shape) > 1:
            return Place(ADAM, name.decays, name.why, name.what)
        is_matrix, why = _of_shape(shape)
        if stack and is_matrix:
            why += " in each layer"
        return Place(self.name if is_matrix else ADAM, len(shape) > 1, why)

    def _label(self, words: Words) -> str:
        return self.name if words == PLAIN else " ".join(words)


def _of_shape(shape: tuple[int, ...]) -> tuple[bool, str]:
    """Whether a leaf that no pattern matches is a matrix, and the reason."""
    if len(shape) < 2:
        return False, "a vector" if shape else "a number"
    if len(shape) > 2:
        return False, f"{len(shape)} axes, and no match in `routes` or `stacked`"
    short, long = sorted(shape)
    if short < 2:
        return False, f"a side of {short}"
    if long >= _LONG and long >= _TIMES * short:
        return False, f"a vocabulary: one side is {long // short} times the other"
    return True, "a matrix"


def _words(name: str, pattern: str, route: object) -> Words:
    """The words for the axes in one entry of `routes`; empty for Adam."""
    if route == ADAM:
        return ()
    if route == name:
        return PLAIN
    words = words_of(route)
    if not words:
        raise ValueError(
            f"{name}: routes[{pattern!r}] is {route!r}, expected {name!r}, 'adam', or "
            "a word for each of the last axes: 'in' for those that the layer sums over "
            "and 'out' for the others. Keep equal words together, such as "
            "'in in in out'."
        )
    return words


def words_of(route: object) -> Words:
    """The words for the axes in a text such as "in in in out"; empty if it is wrong.

    Args:
        route: the text.
    """
    words = tuple(route.split()) if isinstance(route, str) else ()
    turns = [a for a, b in pairwise(words) if a != b]
    return words if set(words) == {"in", "out"} and len(turns) == 1 else ()
