"""Power iteration: the largest eigenvalue and its eigenvector.

von Mises and Pollaczek-Geiringer, Praktische Verfahren der Gleichungsauflosung, 1929
"""

from collections.abc import Callable
from typing import TypeAlias

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, PyTree

from .. import check
from ..core import Real
from ._half import at_least_float32, promoted
from ._products import inner, quotient

_NAME = "power_iteration"
# The step count, v, A v, the eigenvalue, and whether it has converged.
State: TypeAlias = tuple[Array, PyTree, PyTree, Array, Array]


def power_iteration(
    matrix: ArrayLike | Callable[[PyTree], PyTree],
    *,
    v0: PyTree = None,
    num_iters: Real = 100,
    error_tolerance: Real = 1e-6,
    precision: jax.lax.Precision = jax.lax.Precision.HIGHEST,
    key: Array | None = None,
) -> tuple[Array, PyTree]:
    """The eigenvalue of largest modulus of a symmetric matrix, and its eigenvector.

        v <- A v / |A v|        s = <v, A v>        until |A v / s - v| <= tolerance

    Args:
        matrix: `A`, a square matrix; or a function `v -> A v` of a tree of arrays.
        v0: the initial vector; random by default. Required if `matrix` is a function.
        num_iters: maximum number of steps.
        error_tolerance: stop when the error of the eigenvector is at most this.
        precision: precision of the matrix products, on devices that offer a choice.
        key: for the random initial vector; by default `jax.random.key(0)`.

    Returns:
        The eigenvalue and its eigenvector, of norm 1. If `A v` is 0, they are 0 and
        `v`.

    >>> import jax.numpy as jnp
    >>> value, vector = power_iteration(jnp.diag(jnp.array([1.0, 3.0])))
    >>> round(float(value), 4)
    3.0
    """
    check.whole(_NAME, num_iters=num_iters)
    check.real(_NAME, error_tolerance=error_tolerance)
    if key is not None:
        check.key(_NAME, key=key)
    if callable(matrix):
        if v0 is None:
            raise ValueError(
                f"{_NAME}: matrix is a function and v0 is missing. Pass `v0`, a tree "
                "like the argument of the function."
            )
        _check_arrays(v0)
        start = jax.tree.map(lambda x: jnp.asarray(x, promoted(x, 1.0)), v0)
        return _iterate(matrix, start, start, num_iters, error_tolerance)
    (matrix,) = check.array(_NAME, matrix=matrix)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(
            f"{_NAME}: matrix has shape {matrix.shape}, expected a square matrix. Map "
            "over several matrices with `jax.vmap`."
        )
    if v0 is None:
        if not jnp.issubdtype(matrix.dtype, jnp.inexact):
            raise ValueError(
                f"{_NAME}: matrix has dtype {matrix.dtype}, expected real numbers. "
                "Convert it with `.astype(float)`, or pass `v0`."
            )
        key = jax.random.key(0) if key is None else key
        v0 = jax.random.uniform(key, matrix.shape[-1:], matrix.dtype, -1, 1)
    (v0,) = check.array(_NAME, v0=v0)
    if v0.shape != matrix.shape[1:]:
        raise check.WrongArgument(
            f"{_NAME}: v0 has shape {v0.shape} and matrix has shape {matrix.shape}, "
            f"expected v0 of shape {matrix.shape[1:]}."
        )
    like = jnp.zeros_like(v0, dtype=promoted(matrix, v0, 1.0))
    wide = at_least_float32(like).dtype
    a = matrix.astype(wide)
    times = lambda v: jnp.matmul(a, v, precision=precision)
    return _iterate(times, v0.astype(wide), like, num_iters, error_tolerance)


def _check_arrays(v0: PyTree) -> None:
    """Check that every leaf of `v0` is an array."""
    for path, x in jax.tree_util.tree_leaves_with_path(v0):
        if not check.is_number(x):
            where = jax.tree_util.keystr(path) or "(the tree itself)"
            raise check.WrongArgument(
                f"{_NAME}: leaf {where} of v0 {check.kind(x)}, expected an array."
            )


def _check_like(v: PyTree, result: PyTree) -> None:
    """Check that the function returns a tree like its argument."""
    shapes = lambda tree: [jnp.shape(x) for x in jax.tree.leaves(tree)]
    same = jax.tree.structure(v) == jax.tree.structure(result)
    if not same or shapes(v) != shapes(result):
        raise check.WrongArgument(
            f"{_NAME}: the function returns {jax.tree.structure(result)} with shapes "
            f"{shapes(result)}, expected a tree like v0: {jax.tree.structure(v)} with "
            f"shapes {shapes(v)}."
        )


def _iterate(
    times: Callable[[PyTree], PyTree],
    v0: PyTree,
    like: PyTree,
    num_iters: Real,
    tolerance: Real,
) -> tuple[Array, PyTree]:
    """The eigenvalue and its eigenvector, each in the dtype of `like`."""
    leaves = jax.tree.leaves

    def dot(x: PyTree, y: PyTree) -> Array:
        wide = lambda tree: map(at_least_float32, leaves(tree))
        parts = [inner(a, b) for a, b in zip(wide(x), wide(y), strict=True)]
        dtype = promoted(*parts) if parts else float
        return sum((part.astype(dtype) for part in parts), jnp.zeros((), dtype))

    def unit(x: PyTree, else_: PyTree) -> PyTree:
        """`x / |x|`, or `else_` if `x` is 0."""
        # Divided by the largest element first: its square may overflow or underflow.
        tops = [jnp.max(jnp.abs(a), initial=0) for a in leaves(x)]
        top = jnp.max(jnp.stack([t.astype(promoted(*tops)) for t in tops]))
        scaled = jax.tree.map(lambda a: quotient(a, top.astype(a.real.dtype)), x)
        size = jnp.sqrt(dot(scaled, scaled))
        return jax.tree.map(
            lambda a, b: jnp.where(
                top == 0, b, quotient(a, size.astype(a.real.dtype)).astype(b.dtype)
            ),
            scaled,
            else_,
        )

    def step(state: State) -> State:
        i, v, z, *_ = state
        v = unit(z, v)
        z = jax.tree.map(lambda a, b: a.astype(b.dtype), times(v), v)
        s = dot(v, z)
        off = jax.tree.map(lambda a, b: quotient(a, s.astype(a.real.dtype)) - b, z, v)
        return i + 1, v, z, s, jnp.sqrt(dot(off, off)) <= tolerance

    def going(state: State) -> Array:
        i, *_, done = state
        return (i < num_iters) & ~done

    if sum(a.size for a in leaves(v0)) == 0:
        return jnp.zeros((), promoted(*leaves(like), 0.0)), v0
    v0 = unit(v0, v0)
    z0 = times(v0)
    _check_like(v0, z0)
    z0 = jax.tree.map(lambda a, b: a.astype(b.dtype), z0, v0)
    s0 = jnp.zeros_like(dot(v0, v0))
    start = (jnp.zeros((), jnp.int32), v0, z0, s0, jnp.asarray(False))
    _, v, z, s, _ = jax.lax.while_loop(going, step, start)
    vector = jax.tree.map(lambda a, b: a.astype(b.dtype), unit(z, v), like)
    return s.astype(promoted(*(a.real for a in leaves(like)))), vector
