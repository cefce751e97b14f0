"""The dtype rules: compute in float32 or wider, store in the dtype of the storage.

Each leaf is computed in float32, or in float64 if any of its arrays is float64. Memory
is stored in the dtype it had. The update has the dtype of the gradient, or that of the
param if it is wider, so that float32 weights do not get bfloat16 updates.
"""

import contextlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import Array, PyTree

from ...core import Param, Real
from ...numerics import (
    Coded,
    Corrected,
    inlined,
    is_coded,
    is_inexact,
    Sum,
    wide_dtype,
)


def update_dtype(g: Param | Corrected, p: Param | Corrected | None) -> np.dtype:
    """The dtype of the update of a leaf."""
    if not is_inexact(g):
        if p is None or not is_inexact(p):
            return jnp.dtype(jnp.float32)
        return update_dtype(p, p)
    if p is None or p.dtype == g.dtype:
        return g.dtype
    with jax.numpy_dtype_promotion("standard"):
        return jnp.promote_types(g.dtype, p.dtype)


def wide_dtype_of(tree: PyTree) -> np.dtype:
    """The real dtype to compute in, for a tree of arrays and memory."""
    return wide_dtype(jax.tree.leaves(tree, is_leaf=is_coded))


def widen_all(tree: PyTree, real: DTypeLike) -> PyTree:
    """`widen` for all arrays of a tree. Memory in few bits is decoded."""
    return jax.tree.map(lambda x: widen(x, real), tree, is_leaf=is_coded)


def restore_like(
    old: PyTree, new: PyTree, read: PyTree = None, *, late: bool = False
) -> PyTree:
    """New memory, stored like the old one: in its dtypes, or in few bits.

    Args:
        old: the memory before the step, as it is stored.
        new: the same after the step, in the dtypes of the computation.
        read: the memory before the step, in these dtypes, if it is known. What is still
            the same array stays as it is stored.
        late: whether a `Sum` is left for later.
    """

    def one(was: Any, x: Array | Sum, before: Any) -> Array | Coded | Corrected | Sum:
        if x is before:
            return was
        if isinstance(x, Sum):
            if late:
                return x
            x = x.after(was)
        return was.like(x) if is_coded(was) else restore(x, was.dtype)

    if read is None:
        read = jax.tree.map(lambda was: None, old, is_leaf=is_coded)
    return jax.tree.map(one, old, new, read, is_leaf=is_coded)


def decoded(tree: PyTree) -> PyTree:
    """A tree with its memory in few bits decoded. Other arrays are unchanged."""
    decode = lambda x: x.decode() if is_coded(x) else x
    return jax.tree.map(decode, tree, is_leaf=is_coded)


def encoded_like(old: PyTree, new: PyTree) -> PyTree:
    """Undo `decoded`: the arrays of `new` in few bits where those of `old` are.

    Args:
        old: memory, as it is stored.
        new: memory of the same structure. What is in few bits is unchanged.
    """

    def one(was: Any, x: PyTree) -> PyTree:
        return was.like(x) if is_coded(was) and not is_coded(x) else x

    return jax.tree.map(one, old, new, is_leaf=is_coded)


def widen(x: Any, real: DTypeLike, *, integers: bool = False) -> Any:
    """`x` in the precision of `real`. Random keys and integers are unchanged.

    Args:
        x: an array, memory in few bits, a random key, or a Python number, which is
            unchanged.
        real: the real dtype to compute in.
        integers: whether to convert integers too.
    """
    if is_coded(x):
        x = x.decode()
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
    arrays: Sequence[Array | Corrected | None],
) -> contextlib.AbstractContextManager[object]:
    """Allow real and complex arrays to mix if one is complex: `|g|^2` is real.

    With strict promotion, JAX would raise an error.
    """
    if any(jnp.iscomplexobj(x) for x in arrays if x is not None):
        return jax.numpy_dtype_promotion("standard")
    return contextlib.nullcontext()


def in_wide(
    f: Callable[..., Array],
    numbers: Sequence[Real],
    leaves: Sequence[Array | Corrected],
) -> Any:
    """`f(*numbers, *leaves)`, computed in float32 or wider.

    Args:
        f: a function of numbers and arrays.
        numbers: its first arguments.
        leaves: its other arguments. The result is stored like the last one.
    """
    real = wide_dtype(leaves)
    with mixing(leaves):
        result = f(*(widen(x, real) for x in (*numbers, *leaves)))
    return restore_like(leaves[-1], result)


def plus(p: Array | Corrected, u: Array) -> Array | Corrected:
    """`p + u`, stored like `p`.

    Args:
        p: a param.
        u: its update.
    """
    return in_wide(lambda u, p: p + u, [], [u, p])


def wide(f: Callable[..., Array]) -> Callable[..., list[Array]]:
    """Compile `f`, a function of numbers and leaves, for several rows of leaves.

        wide(lambda a, x, y: a * x + y)([a], [(x, y), ...]) -> [a * x + y, ...]

    Each row is computed by `in_wide`.
    """
    one = inlined(partial(in_wide, f))

    @jax.jit
    def many(numbers: Sequence[Real], rows: Sequence[Sequence[Array]]) -> list[Array]:
        return [one(numbers, row) for row in rows]

    return many
