"""Trees to compute with: in one dtype, and of a size whose squares fit in it."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, PyTree

from ..numerics import promoted, wide_dtype
from ..tree import map_numbers, norm


def real_array(x: Any) -> Array:
    """`x` as an array, which is not complex: among those none is the smaller one."""
    x = jnp.asarray(x)
    if jnp.iscomplexobj(x):
        raise ValueError(f"found {x.dtype}")
    return x


def widened(name: str, **trees: PyTree) -> list[PyTree]:
    """The trees with all numbers in float32, or in float64 where one of them is."""
    asarray = jnp.asarray
    arrays = [map_numbers(name, asarray, **{k: tree}) for k, tree in trees.items()]
    real = wide_dtype(jax.tree.leaves(arrays))
    pair = jnp.complex128 if real == jnp.float64 else jnp.complex64
    return [
        jax.tree.map(lambda x: x.astype(pair if jnp.iscomplexobj(x) else real), tree)
        for tree in arrays
    ]


def restored(found: PyTree, trees: list[PyTree], *numbers: Any) -> PyTree:
    """`found` in the dtypes in which the leaves of the trees and the numbers meet.

    A sum over all leaves is in it, so all of them meet; a complex one with its reals.
    """
    reals = [jnp.real(x) for x in jax.tree.leaves(trees)]

    def leaf(y: Array, *xs: Any) -> Array:
        return y.astype(promoted(*xs, *reals, *numbers, 1.0))

    return jax.tree.map(leaf, found, *trees)


def scaled(tree: PyTree) -> tuple[PyTree, Array]:
    """`tree / unit` and the unit, a power of two near its largest number.

    So the squares neither overflow nor vanish: in float32, of 1e20 and of 1e-25. A
    power of two rounds nothing, and is a constant of the derivative.
    """
    largest = jax.lax.stop_gradient(norm(tree, jnp.inf))
    # 2^k with 2^k <= largest < 2^(k + 1); and 1/2 for zero. It and its reciprocal are
    # normal numbers: others may count as zero.
    info = jnp.finfo(largest.dtype)
    k = jnp.clip(jnp.frexp(largest)[1] - 1, int(info.minexp), int(info.maxexp) - 2)
    unit = jnp.ldexp(jnp.ones_like(largest), k)
    return jax.tree.map(lambda x: x / unit.astype(x.dtype), tree), unit
