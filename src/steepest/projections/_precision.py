"""Cast and scale trees so that their squares stay in range."""

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, PyTree

from ..numerics import promoted, wide_dtype
from ..tree import map_numbers, norm


def real_array(x: ArrayLike) -> Array:
    """`x` as an array; complex ones are rejected, since they have no order."""
    x = jnp.asarray(x)
    if jnp.iscomplexobj(x):
        raise ValueError(f"the dtype is {x.dtype}")
    return x


def widened(name: str, **trees: PyTree) -> list[PyTree]:
    """The trees in float32, or in float64 if one of their leaves is."""
    asarray = jnp.asarray
    arrays = [map_numbers(name, asarray, **{k: tree}) for k, tree in trees.items()]
    real = wide_dtype(jax.tree.leaves(arrays))
    pair = jnp.complex128 if real == jnp.float64 else jnp.complex64
    return [
        jax.tree.map(lambda x: x.astype(pair if jnp.iscomplexobj(x) else real), tree)
        for tree in arrays
    ]


def restored(result: PyTree, trees: list[PyTree], *numbers: ArrayLike) -> PyTree:
    """Cast `result` to the common dtype of the leaves and the numbers.

    The result contains a sum over all leaves, so all of them take part. Other complex
    leaves take part with their real dtype.
    """
    reals = [jnp.real(x) for x in jax.tree.leaves(trees)]

    def leaf(y: Array, *xs: ArrayLike) -> Array:
        return y.astype(promoted(*xs, *reals, *numbers, 1.0))

    return jax.tree.map(leaf, result, *trees)


def scaled(tree: PyTree) -> tuple[PyTree, Array]:
    """`tree / unit` and the unit, a power of two near its largest number.

    So squares neither overflow nor underflow, as those of 1e20 and 1e-25 do in float32.
    Dividing by a power of two does not round, and the unit is not differentiated.
    """
    largest = jax.lax.stop_gradient(norm(tree, jnp.inf))
    # 2^k with 2^k <= largest < 2^(k + 1), or 1/2 for zero. Both it and its reciprocal
    # are normal numbers: subnormal ones may be flushed to zero.
    info = jnp.finfo(largest.dtype)
    k = jnp.clip(jnp.frexp(largest)[1] - 1, int(info.minexp), int(info.maxexp) - 2)
    unit = jnp.ldexp(jnp.ones_like(largest), k)
    return jax.tree.map(lambda x: x / unit.astype(x.dtype), tree), unit
