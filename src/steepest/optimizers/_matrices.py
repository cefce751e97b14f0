"""Which leaves are the matrices of hidden layers: their paths and shapes say it."""

import re
from collections.abc import Mapping
from itertools import pairwise
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from ..core import Params, Recent
from ..tree import as_patterns, key_paths

MUON, ADAM = "muon", "adam"
PLAIN = ("in", "out")  # the axes of a matrix, where nobody says otherwise

# What a path says, in the order it is asked. Keys are as flax, Equinox, Haiku and
# torch write them; in flax's NNX a path ends in `value`.
_NAMES = [
    (re.compile(pattern, re.IGNORECASE), what, decays)
    for pattern, what, decays in (
        (r"norm|(^|/)ln_?\w?\d*(?=/|$)", "a norm", False),
        (
            r"(^|[/_])(bias|scale|gain|gamma|offset)(?=(/value)?$)"
            r"|(^|/)b_?\d*(?=(/value)?$)",
            "a bias or a scale",
            False,
        ),
        (r"unembed|(^|/)(?!\w*multi_?head)\w*head_?\d*(?=/|$)", "a head", True),
        (r"logits|classifier|^(params/|model/)*output(?=/|$)", "a head", True),
        (
            r"embed|(^|[/_])(emb|wte|wpe|tok|pos|vocab)(?=[/_\d]|$)"
            r"|(^|/)(tokens|positions)(?=/|$)",
            "embeds",
            True,
        ),
        (r"router", "a router", True),
    )
]
# Sides of 50257 x 768 are those of a vocabulary, and of 28672 x 8192 are not.
_LONG, _TIMES = 10_000, 10
_TREES = 256  # trees remembered


class Place(NamedTuple):
    """Where a leaf goes."""

    label: str  # of its group
    decays: bool
    why: str


class Sorting:
    """Who takes which leaf."""

    def __init__(
        self, name: str, stacked: str | None, routes: Mapping[str, str] | None
    ):
        """Take what the user says, or refuse it.

        Args:
            name: name used in error messages.
            stacked: a pattern for the leaves whose first axis counts layers.
            routes: pattern -> "muon", "adam", or words for the axes.
        """
        if routes is not None and not isinstance(routes, Mapping):
            raise TypeError(
                f"{name}: routes is a {type(routes).__name__}, expected a dict, such "
                'as `{"conv": "in in in out", "adapter": "adam"}`.'
            )
        self._said = dict(routes or {})
        self._patterns = as_patterns(name, list(self._said))
        self._stacked = as_patterns(name, [] if stacked is None else [stacked])
        self._words = [_words(name, *item) for item in self._said.items()]
        self._known: Recent[list[Place]] = Recent(_TREES)

    @property
    def sides(self) -> dict[str, tuple[str, ...]]:
        """Label -> the words for the axes, for each group of matrices."""
        found = {MUON: PLAIN}
        return found | {_label(words): words for words in self._words if words}

    def places(self, params: Params) -> list[Place]:
        """For each leaf, where it goes; remembered for a structure and its shapes."""
        leaves, treedef = jax.tree.flatten(params)
        shapes = tuple(map(jnp.shape, leaves))
        make = lambda: list(map(self._place, key_paths(params), shapes))
        try:
            return self._known((treedef, shapes), make)
        except (TypeError, ValueError):  # a node holds what cannot be compared
            return make()

    def __call__(self, params: Params) -> Params:
        """The label of each leaf, in the structure of the params."""
        found = [place.label for place in self.places(params)]
        return jax.tree.structure(params).unflatten(found)

    def decaying(self, params: Params) -> Params:
        """Whether each leaf decays, in the structure of the params."""
        found = [place.decays for place in self.places(params)]
        return jax.tree.structure(params).unflatten(found)

    def reasons(self, params: Params) -> list[str]:
        """For each leaf, why it goes where it goes."""
        return [place.why for place in self.places(params)]

    def _place(self, path: str, shape: tuple[int, ...]) -> Place:
        stack = 1 if any(pattern.search(path) for pattern in self._stacked) else 0
        shape = shape[stack:]
        rows = zip(self._patterns, self._words, self._said, strict=True)
        for pattern, words, said in rows:
            if pattern.search(path) and len(shape) >= len(words):
                label = _label(words) if words else ADAM
                return Place(label, len(shape) > 1, f"routes: {said!r}")
        for pattern, what, decays in _NAMES:
            found = pattern.search(path)
            if found and len(shape) > 1:
                text = found[0].strip("/_")
                return Place(ADAM, decays, f"{what}: {text!r} in its path")
        label, why = _of_shape(shape)
        if stack and label == MUON:
            why += " in each layer"
        return Place(label, len(shape) > 1, why)


def _of_shape(shape: tuple[int, ...]) -> tuple[str, str]:
    """Who takes a leaf that only its shape speaks for, and why."""
    if len(shape) < 2:
        return ADAM, "a vector" if shape else "a number"
    if len(shape) > 2:
        return ADAM, f"{len(shape)} axes, and no word in `routes` or `stacked`"
    short, long = sorted(shape)
    if short < 2:
        return ADAM, f"a side of {short}"
    if long >= _LONG and long >= _TIMES * short:
        return ADAM, f"a vocabulary: one side is {long // short} times the other"
    return MUON, "a matrix"


def _label(words: tuple[str, ...]) -> str:
    return MUON if words == PLAIN else " ".join(words)


def _words(name: str, pattern: str, said: Any) -> tuple[str, ...]:
    """The words for the axes, of what stands in `routes`; none for Adam."""
    if said == ADAM:
        return ()
    if said == MUON:
        return PLAIN
    words = tuple(said.split()) if isinstance(said, str) else ()
    turns = [a for a, b in pairwise(words) if a != b]
    if set(words) != {"in", "out"} or len(turns) != 1:
        raise ValueError(
            f"{name}: routes[{pattern!r}] is {said!r}, expected 'muon', 'adam', or a "
            "word for each of the last axes: 'in' for those that the layer sums over "
            "and 'out' for the others, side by side, such as 'in in in out'."
        )
    return words
