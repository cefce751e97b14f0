"""The dtype law: compute wide, store as it was stored.

A leaf computes in float32, or in float64 where anything in it is. Memory goes back to
the dtype it was kept in. The update has the gradient's dtype, or the param's where
that is wider, so that float32 weights do not get bfloat16 steps.
"""

import contextlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from ...numerics import is_inexact, wide_dtype


def update_dtype(g: Any, p: Any) -> Any:
    """The dtype in which the update of the leaf leaves."""
    if not is_inexact(g):
        return update_dtype(p, p) if is_inexact(p) else jnp.dtype(jnp.float32)
    if p is None or p.dtype == g.dtype:
        return g.dtype
    with jax.numpy_dtype_promotion("standard"):
        return jnp.promote_types(g.dtype, p.dtype)


def widen(x: Any, real: Any, *, integers: bool = False) -> Any:
    """`x` in the precision of `real`; `None`, keys and integers as they are.

    Args:
        x: an array, or what stands for one.
        real: the real dtype to compute in.
        integers: whether to widen them too.
    """
    if not is_inexact(x):
        return x.astype(real) if integers else x
    if jnp.issubdtype(x.dtype, jnp.complexfloating):
        return x.astype(jnp.complex128 if real == jnp.float64 else jnp.complex64)
    return x.astype(real)


def restore(x: Array, dtype: Any) -> Array:
    """`x` in `dtype`: a number that is too large becomes the largest, not infinite.

    Of a complex number kept as a real one, the real part.
    """
    if jnp.iscomplexobj(x) and not jnp.issubdtype(dtype, jnp.complexfloating):
        x = x.real
    if dtype == jnp.float16:
        top = float(jnp.finfo(dtype).max)
        x = jnp.where(jnp.isfinite(x), jnp.clip(x, -top, top), x)
    return x.astype(dtype)


def mixing(arrays: Sequence[Any]) -> contextlib.AbstractContextManager[Any]:
    """Let a real number meet a complex one, where there is one: `|g|^2` is real.

    Strict promotion, if the user asked for it, forbids that too.
    """
    if any(jnp.iscomplexobj(x) for x in arrays if x is not None):
        return jax.numpy_dtype_promotion("standard")
    return contextlib.nullcontext()


def wide(f: Callable[..., Any]) -> Callable[..., list[Array]]:
    """`f` of numbers and leaves, for some rows of leaves; compiled.

        wide(lambda a, x, y: a * x + y)([a], [(x, y), ...]) -> [a * x + y, ...]

    Computed wide, and returned in the dtype of the last leaf of the row.
    """

    @partial(jax.jit, inline=True)
    def one(numbers: Sequence[Any], leaves: Sequence[Any]) -> Array:
        real = wide_dtype(leaves)
        with mixing(leaves):
            found = f(*(widen(x, real) for x in (*numbers, *leaves)))
        return restore(found, leaves[-1].dtype)

    @jax.jit
    def many(numbers: Sequence[Any], rows: Sequence[Sequence[Any]]) -> list[Array]:
        return [one(numbers, row) for row in rows]

    return many
