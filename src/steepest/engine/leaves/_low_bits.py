"""Which memory is stored in few bits, and which stays as it is."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from math import prod
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import PyTree

from ...core import Rule
from ...numerics import (
    encode,
    is_chosen,
    is_inexact,
    read_again,
    Values,
    values_of,
)
from ...tree import key_paths, named
from ._leaves import Leaves

# For each storage, the codes of signed and of nonnegative memory. A mean square in 4
# bits needs another scale, so it has 8.
KINDS: dict[str, dict[Values, str]] = {
    "int8": {"signed": "signed8", "nonnegative": "unsigned8"},
    "int4": {"signed": "signed4", "nonnegative": "unsigned8"},
    "float8": {"signed": "float8", "nonnegative": "float8"},
}
SMALL = 4096  # elements: a smaller array costs little
SHORT = 16  # elements: in a shorter row, the scale costs as much as the codes save
# Few gradients reach a row of an embedding, and norms and routers are sensitive.
_WIDE = ("a norm", "a bias or a scale", "embeds", "a router")


class Stored(NamedTuple):
    """The memory of a leaf, and what stayed as it was."""

    memory: dict[str, PyTree]  # by name
    why: str  # why memory stayed as it was, such as "a vector"; empty if nothing did


@dataclass(frozen=True)
class LowBits:
    """A storage in few bits."""

    name: str  # one of KINDS

    def begin(
        self, rule: Rule, leaves: Leaves, fields: Collection[str] | None = None
    ) -> list[Stored | None]:
        """The initial memory of each leaf.

        Args:
            rule: the rule.
            leaves: the leaves that its masks select, or their shapes.
            fields: the fields of the memory to make; by default all.
        """
        paths = iter(key_paths(leaves.tree))
        wanted = rule.memory if fields is None else fields
        return [
            None if p is None else self._begin(rule, p, next(paths), wanted)
            for p in leaves.arrays
        ]

    def _begin(
        self, rule: Rule, p: object, path: str, fields: Collection[str]
    ) -> Stored:
        memory, reasons = {}, {}
        for name, begin in rule.memory.items():
            if name not in fields:
                continue
            x = begin(p, **rule.asked_by(begin))
            if values_of(begin) == "orthogonal":
                memory[name], reasons[name] = _in_half(path, x)
                continue
            why = why_exact(begin) or why_wide(path, x)
            alone = len(rule.memory) == 1
            memory[name] = x if why else self.encode(x, values_of(begin), alone)
            if why:
                reasons[name] = why
        return Stored(memory, _text(reasons, len(memory)))

    def encode(self, x: Any, values: Values, alone: bool) -> PyTree:
        """An array of memory in few bits.

        Args:
            x: the array.
            values: what it may hold: "signed" or "nonnegative".
            alone: whether the rule has no other memory, as for a momentum. In 4 bits it
                is then rounded at random. Adam divides by another average, and where
                that is small, a number that was rounded up would make a large step.
        """
        wide = x.astype(jnp.float64 if x.dtype == jnp.float64 else jnp.float32)
        kind = KINDS[self.name][values]
        if kind == "signed4" and x.shape[-1] % 2:  # two codes share a byte
            kind = KINDS["int8"][values]
        elif kind == "signed4" and alone:
            kind = "dithered4"
        # The first memory is zeros, whose largest element XLA would compute while it
        # compiles `init`, for seconds. It does not look behind a barrier.
        return encode(read_again(wide), kind)


def _in_half(path: str, tree: PyTree) -> tuple[PyTree, str]:
    """Orthogonal matrices in float16, unless they are small; and how they are stored.

    A GPU rounds them to float16 in products anyway. In 8 bits, each direction would
    contain 0.9% of others. If that is more than its own size, as in a spectrum that
    decays, an average of its squares is that of the others.
    """
    arrays, treedef = jax.tree.flatten(tree)
    narrow = (jnp.float16, jnp.float32)
    whys = [
        why_wide(path, x) if x.dtype in narrow else f"it is in {x.dtype}"
        for x in arrays
    ]
    pairs = zip(arrays, whys, strict=True)
    stored = [x if why else x.astype(jnp.float16) for x, why in pairs]
    reasons = [why for why in whys if why]
    all_stay = reasons and len(reasons) == len(arrays)
    return treedef.unflatten(stored), reasons[0] if all_stay else "float16"


def _text(reasons: dict[str, str], size: int) -> str:
    """The reasons by name of memory, or the only one if it holds for all of it."""
    names: dict[str, list[str]] = {}
    for name, why in reasons.items():
        names.setdefault(why, []).append(name)
    if len(reasons) == size and len(names) == 1:
        return next(iter(names))
    return "; ".join(f"{', '.join(these)}: {why}" for why, these in names.items())


def why_exact(begin: Callable[..., object]) -> str | None:
    """Why memory of this kind is not stored in few bits; `None` if it is.

    Args:
        begin: the function that makes the initial memory.
    """
    if is_chosen(begin):
        return "it has its own dtype"
    return "its precision matters" if values_of(begin) == "exact" else None


def why_wide(path: str, x: Any) -> str | None:
    """Why the memory of this leaf is not stored in few bits; `None` if it is.

    Args:
        path: the path of the leaf.
        x: an array of its memory.
    """
    shape = getattr(x, "shape", None)
    if shape is None or not is_inexact(x) or jnp.iscomplexobj(x):
        return "it is not real"
    if sum(n > 1 for n in shape) < 2:
        return "a vector"
    if prod(shape) < SMALL:
        return f"fewer than {SMALL} elements"
    if shape[-1] < SHORT:
        return f"rows of fewer than {SHORT} elements"
    name = named(path)
    return name.why if name is not None and name.what in _WIDE else None
