"""The params of a GPT, and gradients for them, at any size."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp


@dataclass(frozen=True)
class GPT:
    """A model, as far as an optimizer sees it: the shapes of its leaves."""

    name: str
    layers: int
    width: int
    vocabulary: int
    context: int

    @cached_property
    def shapes(self) -> dict[str, Any]:
        """The shape of every leaf: 12 a layer, and 4."""
        w = self.width
        return {
            "tokens": jax.ShapeDtypeStruct((self.vocabulary, w), jnp.float32),
            "positions": jax.ShapeDtypeStruct((self.context, w), jnp.float32),
            "layers": [
                {
                    "norm_1": _norm(w),
                    "qkv": _linear(w, 3 * w),
                    "projection": _linear(w, w),
                    "norm_2": _norm(w),
                    "up": _linear(w, 4 * w),
                    "down": _linear(4 * w, w),
                }
                for _ in range(self.layers)
            ],
            "norm": _norm(w),
        }

    def fill(self, seed: int, scale: float) -> dict[str, Any]:
        """Normal numbers in every leaf.

        Args:
            seed: where they come from.
            scale: their standard deviation. Zeros would do for most clocks, but small
                enough numbers are denormal, and those are slow to compute with.
        """
        leaves, treedef = jax.tree.flatten(self.shapes)
        keys = jax.random.split(jax.random.key(seed), len(leaves))
        draws = [
            scale * jax.random.normal(key, leaf.shape)
            for key, leaf in zip(keys, leaves, strict=True)
        ]
        return jax.block_until_ready(treedef.unflatten(draws))

    def __str__(self) -> str:
        leaves = jax.tree.leaves(self.shapes)
        size = sum(leaf.size for leaf in leaves)
        return (
            f"{self.name}: a GPT of {self.layers} layers, width {self.width}, "
            f"vocabulary {self.vocabulary}: {len(leaves)} leaves, {size:,} params"
        )


def _norm(w: int) -> dict[str, Any]:
    return {name: jax.ShapeDtypeStruct((w,), jnp.float32) for name in ("scale", "bias")}


def _linear(m: int, n: int) -> dict[str, Any]:
    return {
        "weight": jax.ShapeDtypeStruct((m, n), jnp.float32),
        "bias": jax.ShapeDtypeStruct((n,), jnp.float32),
    }
