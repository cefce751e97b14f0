"""What an optimizer sees of a model: the shapes of its leaves, filled with numbers."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp


@dataclass(frozen=True, eq=False)
class Tree:
    """The shapes of a model's leaves, and the name of the model in the results."""

    name: str
    says: str  # a description for the reader
    shapes: Any  # a pytree of `jax.ShapeDtypeStruct`

    @property
    def leaves(self) -> int:
        """The number of leaves."""
        return len(jax.tree.leaves(self.shapes))

    @property
    def params(self) -> int:
        """The number of elements in all leaves."""
        return sum(leaf.size for leaf in jax.tree.leaves(self.shapes))

    def fill(self, seed: int, scale: float) -> Any:
        """Normally distributed numbers in every leaf.

        Args:
            seed: seed of the random numbers.
            scale: their standard deviation. Zeros would do for most timings, but tiny
                numbers are denormal, which is slow.
        """
        return self.draw(seed, lambda key, n: scale * jax.random.normal(key, n))

    def draw(self, seed: int, one: Callable[[Any, tuple[int, ...]], Any]) -> Any:
        """Random numbers in every leaf.

        Args:
            seed: seed of the random numbers.
            one: a key and the shape of a leaf -> its numbers.
        """
        leaves, treedef = jax.tree.flatten(self.shapes)
        keys = jax.random.split(jax.random.key(seed), len(leaves))
        draws = [one(key, leaf.shape) for key, leaf in zip(keys, leaves, strict=True)]
        return jax.block_until_ready(treedef.unflatten(draws))

    def describe(self) -> dict[str, Any]:
        """The description that is saved with the results."""
        return {"says": self.says, "leaves": self.leaves, "params": self.params}


def gpt(layers: int, width: int, vocabulary: int, context: int) -> dict[str, Any]:
    """A GPT: 12 leaves per layer, and 4 more."""
    return {
        "tokens": _array(vocabulary, width),
        "positions": _array(context, width),
        "layers": [_block(width) for _ in range(layers)],
        "norm": _norm(width),
    }


def stacked_gpt(
    layers: int, width: int, vocabulary: int, context: int
) -> dict[str, Any]:
    """The same with one leaf for each kind of weight, whose first axis is the layer."""
    stack = lambda x: _array(layers, *x.shape)
    one = gpt(1, width, vocabulary, context)
    return one | {"layers": jax.tree.map(stack, one["layers"][0])}


def vit(
    layers: int, width: int, patch: int, patches: int, classes: int
) -> dict[str, Any]:
    """A vision transformer: 12 leaves per layer, and 8 more."""
    return {
        "patches": {"weight": _array(patch, patch, 3, width), "bias": _array(width)},
        "class": _array(1, 1, width),
        "positions": _array(1, patches + 1, width),
        "layers": [_block(width) for _ in range(layers)],
        "norm": _norm(width),
        "head": _linear(width, classes),
    }


def matrices(count: int, width: int, rows: int | None = None) -> list[Any]:
    """Matrices of equal size, by default square."""
    return [_array(rows or width, width) for _ in range(count)]


def _array(*shape: int) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, jnp.float32)


def _block(w: int) -> dict[str, Any]:
    """One layer of a transformer."""
    return {
        "norm_1": _norm(w),
        "qkv": _linear(w, 3 * w),
        "projection": _linear(w, w),
        "norm_2": _norm(w),
        "up": _linear(w, 4 * w),
        "down": _linear(4 * w, w),
    }


def _norm(w: int) -> dict[str, Any]:
    return {"scale": _array(w), "bias": _array(w)}


def _linear(m: int, n: int) -> dict[str, Any]:
    return {"weight": _array(m, n), "bias": _array(n)}


def _named(*trees: Tree) -> dict[str, Tree]:
    return {tree.name: tree for tree in trees}


TREES = _named(
    Tree("gpt2", "GPT-2 124M", gpt(12, 768, 50257, 1024)),
    Tree("gpt2-xl", "GPT-2 XL", gpt(48, 1600, 50257, 1024)),
    Tree("gpt2-xl stacked", "GPT-2 XL", stacked_gpt(48, 1600, 50257, 1024)),
    Tree("xl-narrow", "the leaves of GPT-2 XL at width 32", gpt(48, 32, 256, 64)),
    Tree("wide", "a GPT of 12 layers, width 512", gpt(12, 512, 8192, 512)),
    Tree("many", "a GPT of 400 layers, width 64", gpt(400, 64, 1024, 64)),
    Tree("vit", "ViT-B/16", vit(12, 768, 16, 196, 1000)),
    Tree("giant", "one leaf, 8192 x 8192", matrices(1, 8192)),
    Tree("billion", "16 matrices, 8192 x 8192", matrices(16, 8192)),
    Tree("wide billion", "64 matrices, 2048 x 8192", matrices(64, 8192, 2048)),
    Tree("middle", "a GPT of one layer, width 512", gpt(1, 512, 2048, 512)),
    Tree("matrices-64", "100 matrices, 64 x 64", matrices(100, 64)),
    Tree("matrices-96", "40 matrices, 96 x 96", matrices(40, 96)),
    Tree("matrices-256", "100 matrices, 256 x 256", matrices(100, 256)),
)

_TINY = "tiny, to see that all runs"
# With the same names, for `--quick`.
TINY = {name: Tree(name, _TINY, matrices(2, 16)) for name in TREES} | _named(
    Tree("vit", _TINY, vit(0, 16, 2, 4, 10)),
    Tree("giant", _TINY, matrices(1, 16)),
    Tree("gpt2-xl stacked", _TINY, stacked_gpt(2, 128, 256, 32)),
    # Smaller leaves would stay in float32.
    Tree("billion", _TINY, matrices(2, 64)),
    Tree("wide billion", _TINY, matrices(2, 64)),
)
