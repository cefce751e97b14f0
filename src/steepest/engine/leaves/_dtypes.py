"""The dtype rules: compute in float32 or wider, store in the dtype of the storage.

Each leaf is computed in float32, or in float64 if any of its arrays is float64. Memory
is stored in the dtype it had. The update has the dtype of the gradient, or that of the
param if it is wider, so that float32 weights do not get bfloat16 updates.
"""

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import Array

from ...core import Param, Real
from ...numerics import inlined, is_inexact, wide_dtype


def update_dtype(g: Param, p: Param | None) -> np.dtype:
    """The dtype of the update of a leaf."""
    if not is_inexact(g):
        if p is None or not is_inexact(p):
            return jnp.dtype(jnp.float32)
        return update_dtype(p, p)
    if p is None or p.dtype == g.dtype:
        return g.dtype
    with jax.numpy_dtype_promotion("standard"):
        return jnp.promote_types(g.dtype, p.dtype)


def widen(x: Any, real: DTypeLike, *, integers: bool = False) -> Any:
    """`x` in the precision of `real`. Random keys and integers are unchanged.

    Args:
        x: an array, a random key, or a Python number, which is unchanged.
        real: the real dtype to compute in.
        integers: whether to convert integers too.
    """
    if not is_inexact(x):
        return x.astype(real) if integers else x
    if jnp.issubdtype(x.dtype, jnp.complexfloating):
        return x.astype(jnp.complex128 if real == jnp.float64 else jnp.complex64)
    return x.astype(real)


def restore(x: Array, dtype: DTypeLike) -> Array:
    """`x` in `dtype`. In float16, values that overflow become the largest finite value.

    If `x` is complex and `dtype` is real, the real part is returned.
    """
    if jnp.iscomplexobj(x) and not jnp.issubdtype(dtype, jnp.complexfloating):
        x = x.real
    if dtype == jnp.float16:
        top = float(jnp.finfo(dtype).max)
        x = jnp.where(jnp.isfinite(x), jnp.clip(x, -top, top), x)
    return x.astype(dtype)


def mixing(
    arrays: Sequence[Array | None],
) -> contextlib.AbstractContextManager[object]:
    """Allow real and complex arrays to mix if one is complex: `|g|^2` is real.

    With strict promotion, JAX would raise an error.
    """
    if any(jnp.iscomplexobj(x) for x in arrays if x is not None):
        return jax.numpy_dtype_promotion("standard")
    return contextlib.nullcontext()


def wide(f: Callable[..., Array]) -> Callable[..., list[Array]]:
    """Compile `f`, a function of numbers and leaves, for several rows of leaves.

        wide(lambda a, x, y: a * x + y)([a], [(x, y), ...]) -> [a * x + y, ...]

    Each row is computed in float32 or wider. The result has the dtype of its last leaf.
    """

    @inlined
    def one(numbers: Sequence[Real], leaves: Sequence[Array]) -> Array:
        real = wide_dtype(leaves)
        with mixing(leaves):
            result = f(*(widen(x, real) for x in (*numbers, *leaves)))
        return restore(result, leaves[-1].dtype)

    @jax.jit
    def many(numbers: Sequence[Real], rows: Sequence[Sequence[Array]]) -> list[Array]:
        return [one(numbers, row) for row in rows]

    return many
