"""Decide from its path and shape which axes of a leaf share a mean square."""

import re
from collections.abc import Mapping
from typing import NamedTuple

from ..core import Param
from ._groups import ADAM, Place, PLAIN, Sorting, Words

TURNED: Words = ("out", "in")  # the axes of a matrix in Equinox and torch
_WORD = re.compile(r"in|out|head|out/[1-9]\d*")
_WEIGHT = re.compile(r"(^|/)weight\w*(?=(/value)?$)", re.IGNORECASE)
_KERNEL = re.compile(r"(^|/)(kernel|w)(?=(/value)?$)", re.IGNORECASE)
_VECTORS = ("a norm", "a bias or a scale")


class Averages(Sorting):
    """Assigns each leaf to a group with the same words for its axes."""

    def __init__(
        self, name: str, stacked: str | None, routes: Mapping[str, str] | None
    ):
        """Check the options.

        Args:
            name: name used in error messages.
            stacked: a pattern for leaves whose first axis indexes layers.
            routes: maps a pattern to "adam", or a word for each axis.
        """
        known = isinstance(routes, Mapping)
        super().__init__(
            name, stacked, dict.fromkeys(routes, ADAM) if known else routes
        )
        self._words = [
            () if route == ADAM else words_of(name, f"routes[{pattern!r}]", route)
            for pattern, route in (routes or {}).items()
        ]

    @property
    def sides(self) -> dict[str, Words]:
        """The words for the axes of each group, by label."""
        words = [PLAIN, TURNED, *filter(None, self._words)]
        return {self._label(one): one for one in words}

    def _place(self, path: str, shape: tuple[int, ...]) -> Place:
        place = super()._place(path, shape)
        if place.why.startswith("routes: "):
            return place
        stack = any(pattern.search(path) for pattern in self._stacked)
        shape = shape[1:] if stack else shape
        if len(shape) != 2 or min(shape) < 2 or place.why.startswith(_VECTORS):
            return place._replace(label=ADAM)
        return place._replace(label=self._label(_layout(path, shape, place.why)))

    def _label(self, words: Words) -> str:
        return " ".join(words)


def _layout(path: str, shape: tuple[int, ...], why: str) -> Words:
    """The words for the axes of a matrix; a token is an output."""
    if _WEIGHT.search(path):
        return TURNED
    if _KERNEL.search(path):
        return PLAIN
    is_table = why.startswith(("embeds", "a vocabulary")) and shape[0] >= shape[1]
    return TURNED if is_table else PLAIN


def words_of(name: str, argument: str, text: object) -> Words:
    """The words for the axes, one by one.

    Args:
        name: name used in error messages.
        argument: the argument they come from.
        text: the words, separated by spaces.
    """
    words = tuple(text.split()) if isinstance(text, str) else ()
    if not words or not all(map(_WORD.fullmatch, words)):
        also = "'adam', or " if argument != "axes" else ""
        raise ValueError(
            f"{name}: {argument} is {text!r}, expected {also}a word for each of the "
            "last axes: 'in' for those that the layer sums over, 'out' for the others, "
            "'head', or 'out/12' for an axis that holds 12 heads."
        )
    return words


def averaged(
    shape: tuple[int, ...], words: Words
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """A shape with an axis of its own for the heads, and the axes to average over.

    Args:
        shape: shape of a leaf.
        words: for each of the last axes. With more words than axes, no axis is
            averaged.
    """
    first = len(shape) - len(words)
    if first < 0:
        return shape, ()
    sizes, kinds = list(shape[:first]), ["stack"] * first
    for size, word in zip(shape[first:], words, strict=True):
        kind, _, heads = word.partition("/")
        if heads:
            sizes.append(int(heads))
            kinds.append("head")
            size //= int(heads)
        sizes.append(size)
        kinds.append(kind)
    kept = ("stack", "head" if "head" in kinds else "out")
    axes = tuple(axis for axis, kind in enumerate(kinds) if kind not in kept)
    return tuple(sizes), axes


class Indivisible(NamedTuple):
    """A `check_leaf` that refuses an axis that does not hold whole heads."""

    words: Words

    def __call__(self, g: Param) -> str | None:
        first = g.ndim - len(self.words)
        if first < 0:
            return None
        for size, word in zip(g.shape[first:], self.words, strict=True):
            heads = int(word.partition("/")[2] or 1)
            if size % heads:
                return (
                    f"has shape {g.shape} and an axis of {size} for {word!r}, expected "
                    f"a multiple of {heads}."
                )
        return None
