"""The gradients of `python -m benchmarks.gpu matrix`."""

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp

from .trees import Tree

# Different gradients: the factors of SOAP would be singular with few. Sixteen of a
# large model do not fit into the memory of a GPU, and four are enough for sides that
# are four times as long as the others.
GRADIENTS, FEW_GRADIENTS, LARGE_MODEL = 16, 4, 500_000_000

Draw = Callable[[Tree, int, float], Any]  # (params, seed, size) -> gradients


def how_many(tree: Tree) -> int:
    """The number of different gradients."""
    return FEW_GRADIENTS if tree.params > LARGE_MODEL else GRADIENTS


def steep(tree: Tree, seed: int, scale: float) -> Any:
    """Normal numbers, with row and column k divided by k, and then rotated.

    Their singular values decay, as those of real gradients do. The factors of
    independent normal numbers are well conditioned, and easy for SOAP. The rotation is
    the same for all sides of equal length.

    Args:
        tree: the params, which are matrices.
        seed: seed of the random numbers.
        scale: root mean square of the elements.
    """
    return tree.draw(
        seed, lambda key, shape: _steep(key, scale, *map(_rotation, shape))
    )


@jax.jit
def _steep(key: Any, scale: float, left: Any, right: Any) -> Any:
    m, n = len(left), len(right)
    g = jax.random.normal(key, (m, n))
    g = g / jnp.arange(1, m + 1)[:, None] / jnp.arange(1, n + 1)
    g = left @ g @ right.T
    return g * (scale / jnp.sqrt(jnp.mean(g * g)))


@lru_cache
def _rotation(side: int) -> Any:
    draw = partial(jax.random.normal, jax.random.key(side))
    return jnp.linalg.qr(draw((side, side)))[0]
