"""Trees of params and their gradients, with few shapes to share compilations."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

STEPS = 6


class Layer(NamedTuple):
    """A node with named children."""

    kernel: Any
    bias: Any


class Leaf(NamedTuple):
    """The shape of a leaf, and which of the problem's dtypes it has."""

    shape: tuple[int, ...]
    kind: int = 0


TREES: dict[str, Any] = {
    "dict": {"w": Leaf((3, 2)), "b": Leaf((2,), 1)},
    "layers": (Layer(Leaf((2, 3)), None), [Leaf((), 1)]),
    "holes": {"a": [Leaf((2,)), None], "z": Leaf((0, 3)), "n": Leaf((), 1)},
    "scalar": Leaf(()),
}
# The dtypes of leaves and gradients, by kind.
DTYPES = {
    "float32": ("float32", "float32"),
    "complex64": ("complex64", "float32"),
    "bfloat16": ("bfloat16", "float32"),
    "float16": ("float16", "float16"),
    "int32": ("float32", "int32"),
}
GRADIENTS = "normal", "zero", "huge", "tiny", "nan", "inf"


@dataclass(frozen=True)
class Problem:
    """The inputs for an expression."""

    tree: str = "dict"
    dtype: str = "float32"
    gradients: Sequence[str] = ("normal",) * STEPS
    eager: bool = False

    @property
    def is_half(self) -> bool:
        """Whether some leaf has half precision."""
        return self.dtype in ("bfloat16", "float16")

    def simpler(self) -> Iterator["Problem"]:
        """Simpler problems."""
        yield from (replace(self, tree=x) for x in TREES if x < self.tree)
        if self.dtype != "float32":
            yield replace(self, dtype="float32")
        if self.eager:
            yield replace(self, eager=False)
        for k, kind in enumerate(self.gradients):
            if kind != "normal":
                rest = *self.gradients[:k], "normal", *self.gradients[k + 1 :]
                yield replace(self, gradients=rest)

    def params(self, t: int, precision: str = "") -> Any:
        """The params before step `t`: a path that does not depend on the updates."""
        # Never near zero, where rounding would decide the sign.
        return self._tree(lambda x: 1.5 + x + 0.1 * t * np.cos(7 * x), 0.0, precision)

    def gradient(self, t: int, precision: str = "") -> Any:
        """The gradient of step `t`."""
        kind = self.gradients[t]
        size = {"huge": 1e4 if self.is_half else 1e12, "tiny": 1e-4, "zero": 0.0}
        times = size.get(kind, 1.0)
        f = lambda x: times * np.where(np.sin(9 * x + t) > 0, 1, -1) * (0.3 + x)
        spoilt = {"nan": np.nan, "inf": np.inf}.get(kind)
        return self._tree(f, 1.0, precision, spoilt)

    def value(self, t: int) -> Any:
        """The loss before step `t`."""
        return jnp.asarray([2.0, 1.5, 0.5, 0.75, 0.75, 0.25][t % STEPS], jnp.float32)

    def _tree(self, f: Any, offset: float, precision: str, spoilt: Any = None) -> Any:
        leaves, treedef = jax.tree.flatten(
            TREES[self.tree], is_leaf=lambda x: isinstance(x, Leaf)
        )
        made = []
        for k, leaf in enumerate(leaves):
            name = DTYPES[self.dtype][leaf.kind]
            size = int(np.prod(leaf.shape))
            x = (np.arange(size) * 0.37 + k * 0.21 + offset * 0.11) % 1.0
            values = f(x)
            if name == "complex64":
                values = values + 1j * f((x * 1.7 + 0.3) % 1.0)
            elif name == "int32":
                values = np.round(np.clip(values, -9, 9) * 3)
            if spoilt is not None and size and k < 2 and name != "int32":
                values[0] = spoilt
            made.append(_array(values.reshape(leaf.shape), name, precision))
        return treedef.unflatten(made)


def _array(values: Any, name: str, precision: str) -> Any:
    """The array in its dtype, or its values in another precision."""
    x = jnp.asarray(values, name)
    if not precision or name == "int32":
        return x
    if name == "complex64":
        return x.astype(jnp.complex128 if precision == "float64" else name)
    return x.astype(precision)
